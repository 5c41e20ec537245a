package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Position is a set of points that an answer must, or does, reflect, sorted. Its text is a list of points with commas
// between them:
//
//	orders/3@1041     the record at offset 1041 of partition 3 of the topic orders, and those before it
//	totals/3#77       commit 77 of task totals/3, and those before it
//
// In the name a backslash, comma, slash, at sign or number sign has a backslash before it; topics never have one.
type Position []Point

// Point is one point of a Position.
type Point struct {
	// Name is a topic, or for a commit a sub-topology.
	Name      string
	Partition int32
	// Commit says that Number is the number of a commit, else it is the offset of a record.
	Commit bool
	Number int64
}

func (p Point) compare(q Point) int {
	switch {
	case p.Name != q.Name:
		return strings.Compare(p.Name, q.Name)
	case p.Partition != q.Partition:
		return int(p.Partition) - int(q.Partition)
	case p.Commit == q.Commit:
		return 0
	case p.Commit:
		return 1
	}
	return -1
}

const special = `\,/@#`

// String returns the text of a point.
func (p Point) String() string {
	var b strings.Builder
	for i := range len(p.Name) {
		if strings.IndexByte(special, p.Name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(p.Name[i])
	}
	mark := '@'
	if p.Commit {
		mark = '#'
	}
	fmt.Fprintf(&b, "/%d%c%d", p.Partition, mark, p.Number)
	return b.String()
}

// String returns the text of a position, which ParsePosition reads.
func (p Position) String() string {
	parts := make([]string, len(p))
	for i, q := range p {
		parts[i] = q.String()
	}
	return strings.Join(parts, ",")
}

// maxPoints bounds a position that somebody sends.
const maxPoints = 10_000

// ParsePosition reads the text of a position. An empty text is an empty position.
func ParsePosition(text string) (Position, error) {
	var p Position
	for len(text) > 0 {
		q, rest, ok := parsePoint(text)
		if !ok || len(p) == maxPoints {
			return nil, Errorf(TokenMalformed, "%.80q is no position: it is a list of topic/partition@offset and task/partition#commit with commas between them", text)
		}
		p = append(p, q)
		text = rest
	}
	return Position(nil).Merge(p), nil
}

func parsePoint(text string) (p Point, rest string, ok bool) {
	var name strings.Builder
	i := 0
	for ; i < len(text) && text[i] != '/'; i++ {
		if text[i] == '\\' {
			i++
		} else if strings.IndexByte(special, text[i]) >= 0 {
			return p, "", false
		}
		if i == len(text) {
			return p, "", false
		}
		name.WriteByte(text[i])
	}
	if i >= len(text) || name.Len() == 0 {
		return p, "", false
	}
	point, rest, more := strings.Cut(text[i+1:], ",")
	if more && rest == "" {
		return p, "", false
	}
	at := strings.IndexAny(point, "@#")
	if at < 0 {
		return p, "", false
	}
	partition, err := strconv.ParseUint(point[:at], 10, 31)
	if err != nil {
		return p, "", false
	}
	number, err := strconv.ParseUint(point[at+1:], 10, 63)
	if err != nil {
		return p, "", false
	}
	return Point{name.String(), int32(partition), point[at] == '#', int64(number)}, rest, true
}

// Merge returns the least position that contains both.
func (p Position) Merge(q Position) Position {
	out := slices.Concat(p, q)
	slices.SortFunc(out, func(a, b Point) int {
		if c := a.compare(b); c != 0 {
			return c
		}
		return int(min(1, max(-1, b.Number-a.Number))) // the farthest first
	})
	return slices.CompactFunc(out, func(a, b Point) bool { return a.compare(b) == 0 })
}

// Commit returns the number of the commit of a task that the position names, 0 if it names none.
func (p Position) Commit(t Task) uint64 {
	i, ok := slices.BinarySearchFunc(p, Point{Name: t.Sub, Partition: t.Partition, Commit: true}, Point.compare)
	if !ok {
		return 0
	}
	return uint64(p[i].Number)
}

// Offset returns the offset in a partition that the position names.
func (p Position) Offset(topic string, partition int32) (int64, bool) {
	i, ok := slices.BinarySearchFunc(p, Point{Name: topic, Partition: partition}, Point.compare)
	if !ok {
		return 0, false
	}
	return p[i].Number, true
}

// Topics returns the topics in which the position names records.
func (p Position) Topics() []string {
	var out []string
	for _, q := range p {
		if !q.Commit && (len(out) == 0 || out[len(out)-1] != q.Name) {
			out = append(out, q.Name)
		}
	}
	return out
}
