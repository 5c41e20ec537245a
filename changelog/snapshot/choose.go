package snapshot

import (
	"fmt"
	"time"
)

// Kind says where a candidate's state comes from. Where costs are equal, the lower kind is preferred.
type Kind int

// The kinds of candidates.
const (
	Local Kind = iota
	Remote
	Changelog
)

func (k Kind) String() string {
	switch k {
	case Local:
		return "local"
	case Remote:
		return "snapshot"
	case Changelog:
		return "changelog"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Candidate is one way of restoring a task.
type Candidate struct {
	Kind Kind
	// Name tells it from others of its kind, for people. It may be empty.
	Name string
	// Rejected is why it must not be used, "" if it may be: what Judge said, or the error of reading it.
	Rejected string
	// Cost is how long it will take.
	Cost time.Duration
}

func (c Candidate) String() string {
	if c.Name == "" {
		return c.Kind.String()
	}
	return c.Kind.String() + " " + c.Name
}

// Rates are how fast restores go.
type Rates struct {
	BytesPerSecond   float64 // of downloads; zero or less: 100 MB
	RecordsPerSecond float64 // of replays; zero or less: 500,000
}

const (
	defaultBytes   = 100e6
	defaultRecords = 500e3
)

// Estimate returns how long it takes to move so many bytes and then to replay so many records.
func Estimate(bytes, records int64, r Rates) time.Duration {
	if r.BytesPerSecond <= 0 {
		r.BytesPerSecond = defaultBytes
	}
	if r.RecordsPerSecond <= 0 {
		r.RecordsPerSecond = defaultRecords
	}
	seconds := float64(max(bytes, 0))/r.BytesPerSecond + float64(max(records, 0))/r.RecordsPerSecond
	const most = float64(1<<62) / float64(time.Second)
	return time.Duration(min(seconds, most) * float64(time.Second))
}

// Choose returns the index of the cheapest candidate that is not rejected, and for each of the others, in order, a line that
// says why it lost. Where costs are equal the kind decides, then the order. It returns -1 if all are rejected.
func Choose(candidates []Candidate) (winner int, losers []string) {
	winner = -1
	for i, c := range candidates {
		if c.Rejected == "" && (winner < 0 || cheaper(c, candidates[winner])) {
			winner = i
		}
	}
	for i, c := range candidates {
		switch {
		case i == winner:
		case c.Rejected != "":
			losers = append(losers, fmt.Sprintf("%v: %s", c, c.Rejected))
		default:
			w := candidates[winner]
			losers = append(losers, fmt.Sprintf("%v: takes %v, %v takes %v", c, c.Cost.Round(time.Millisecond), w, w.Cost.Round(time.Millisecond)))
		}
	}
	return winner, losers
}

func cheaper(a, b Candidate) bool {
	return a.Cost < b.Cost || a.Cost == b.Cost && a.Kind < b.Kind
}
