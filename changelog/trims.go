package changelog

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark/tidemark/internal/wire"
)

// Trim says from where on the changelog partition of a store holds rows that are still needed. The rows of such a store
// expire in the order of their groups, the ends of windows for example, and leave no tombstone.
type Trim struct {
	Store string
	// Floor is the smallest row key that has not expired, in the store's order; nil while none has.
	Floor []byte
	// Segments divide the changelog. Their groups ascend strictly.
	Segments []Segment
}

// Segment is a range of a changelog partition, up to the start of the next one.
type Segment struct {
	Start int64 // first offset
	Group int64 // the highest group of its rows
}

// maxSegments bounds the segments of a store.
const maxSegments = 64

// Add notes that a commit has written rows from an offset on, and the highest group among them. It returns a new Trim and
// leaves t as it is.
func (t Trim) Add(start, group int64) Trim {
	if n := len(t.Segments); n > 0 && t.Segments[n-1].Group >= group {
		// It goes when the segment before goes.
		return t
	}
	t.Segments = append(slices.Clip(t.Segments), Segment{start, group})
	if len(t.Segments) > maxSegments {
		t.Segments = slices.Clone(t.Segments)
		t.join()
	}
	return t
}

// join makes one segment of the two that cover the least together, so that all stay about equally wide. The first one is left
// alone: it is the next to go, and would never if it took in more and more.
func (t *Trim) join() {
	at, least := 0, uint64(math.MaxUint64)
	for i := 2; i < len(t.Segments); i++ {
		if d := uint64(t.Segments[i].Group) - uint64(t.Segments[i-2].Group); d < least {
			at, least = i, d
		}
	}
	t.Segments[at-1].Group = t.Segments[at].Group
	t.Segments = slices.Delete(t.Segments, at, at+1)
}

// Expire takes in that every group below that one has expired. It returns a new Trim and leaves t as it is. The last
// segment stays in any case, so that the offset up to which a trim may go never depends on later commits.
func (t Trim) Expire(group int64, floor []byte) Trim {
	n := 0
	for n < len(t.Segments)-1 && t.Segments[n].Group < group {
		n++
	}
	t.Segments, t.Floor = t.Segments[n:], floor
	return t
}

// Needed returns the first offset that may hold a row that has not expired; 0 if nothing is known of the store.
func (t Trim) Needed() int64 {
	if len(t.Segments) == 0 {
		return 0
	}
	return t.Segments[0].Start
}

const trimsVersion = 1

// AppendTrims appends what SectionTrims of a progress record holds:
//
//	+------------+-----------------------------------------------------------+
//	| version, 1 | per store: id | floor | count, per segment: start | group |
//	+------------+-----------------------------------------------------------+
//
// Ids and floors are behind their length; lengths, counts and starts are uvarints, groups zigzag varints. Starts and
// groups after the first are differences to the one before.
func AppendTrims(dst []byte, trims []Trim) []byte {
	dst = append(dst, trimsVersion)
	dst = wire.AppendUvarint(dst, uint64(len(trims)))
	for _, t := range trims {
		dst = wire.AppendString(dst, t.Store)
		dst = wire.AppendString(dst, t.Floor)
		dst = wire.AppendUvarint(dst, uint64(len(t.Segments)))
		var last Segment
		for _, s := range t.Segments {
			dst = wire.AppendUvarint(dst, uint64(s.Start-last.Start))
			dst = wire.AppendVarint(dst, s.Group-last.Group)
			last = s
		}
	}
	return dst
}

var errTrims = errors.New("bad section of trims")

// ParseTrims reads what AppendTrims wrote; nothing for an empty section. The result does not alias b.
func ParseTrims(b []byte) ([]Trim, error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := wire.NewReader(b)
	if v := r.Byte(); v != trimsVersion {
		return nil, fmt.Errorf("changelog: %w: version %d", errTrims, v)
	}
	var out []Trim
	for range r.Count(3) {
		t := Trim{Store: r.String()}
		if floor := r.Bytes(r.Count(1)); len(floor) > 0 {
			t.Floor = slices.Clone(floor)
		}
		var last Segment
		for range r.Count(2) {
			last.Start += int64(r.Uvarint())
			last.Group += r.Varint()
			t.Segments = append(t.Segments, last)
		}
		out = append(out, t)
	}
	if r.Err() != nil || r.Len() > 0 {
		return nil, fmt.Errorf("changelog: %w", errTrims)
	}
	return out, nil
}
