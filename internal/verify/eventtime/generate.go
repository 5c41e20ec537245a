// Package eventtime makes the input of the tests of determinism: records of several partitions whose disorder is known,
// and what is compared of the results. It runs nothing itself, so that the same data meet the test driver and real
// instances.
package eventtime

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/window"
)

// Record is one input record.
type Record struct {
	Key   string
	Value int64 // distinct in a data set
	Time  int64 // ms
}

// Disorder is how late the records of a data set are, by the watermark of their own partition.
type Disorder int

const (
	// InTime has no record that is late by its own partition.
	InTime Disorder = iota
	// LateWithin has records that are late, and none later than the allowed lateness.
	LateWithin
	// TooLate has records beyond it as well.
	TooLate
)

// String names the disorder.
func (d Disorder) String() string {
	return [...]string{"no own-lateness", "own-late within the lateness", "beyond the lateness"}[d]
}

// Settings are what the topology under test has: a tumbling window of Size, records that may be Delay behind, Lateness.
type Settings struct {
	Size, Delay, Lateness int64 // ms
	Partitions, Records   int   // records per partition
	Keys                  int
}

// Generate makes the records of each partition, in their order.
func Generate(r *rand.Rand, s Settings, d Disorder) [][]Record {
	parts := make([][]Record, s.Partitions)
	value := int64(1)
	for p := range parts {
		now := r.Int64N(s.Size)
		for range s.Records {
			now += r.Int64N(s.Size / 4)
			lag := r.Int64N(s.Delay + 1)
			if d > InTime && r.IntN(5) == 0 {
				lag = s.Delay + r.Int64N(s.Lateness+1)
			}
			if d > LateWithin && r.IntN(5) == 0 {
				lag += s.Lateness + r.Int64N(3*s.Size)
			}
			parts[p] = append(parts[p], Record{fmt.Sprint("k", r.IntN(s.Keys)), value, max(now-lag, 0)})
			value += 1 + r.Int64N(3)
		}
	}
	return parts
}

// Pane is one result.
type Pane struct {
	Key    string
	Window window.Bounds
	Timing window.Timing
	Value  int64
}

// Outcome is what one execution has come to.
type Outcome struct {
	OnTime  map[string]int64 // by key and window
	Late    int              // late panes
	Finals  map[string]int64
	Dropped []int64 // values of refused records, ascending
}

// Judge makes an Outcome of the panes of an execution in accumulating mode, in their order per key, and of the values it
// has refused.
func Judge(panes []Pane, dropped []int64) Outcome {
	o := Outcome{OnTime: map[string]int64{}, Finals: map[string]int64{}, Dropped: slices.Sorted(slices.Values(dropped))}
	for _, p := range panes {
		id := p.Key + p.Window.String()
		switch p.Timing {
		case window.TimingOnTime:
			o.OnTime[id] = p.Value
		case window.TimingLate:
			o.Late++
		}
		o.Finals[id] = p.Value
	}
	return o
}

// Differences says in what two executions of the same data differ.
type Differences struct{ OnTime, Finals, Dropped bool }

// Compare compares two executions.
func Compare(a, b Outcome) Differences {
	return Differences{
		OnTime: !maps.Equal(a.OnTime, b.OnTime) || a.Late != b.Late, Finals: !maps.Equal(a.Finals, b.Finals),
		Dropped: !slices.Equal(a.Dropped, b.Dropped),
	}
}

// Or joins what differed.
func (d Differences) Or(e Differences) Differences {
	return Differences{d.OnTime || e.OnTime, d.Finals || e.Finals, d.Dropped || e.Dropped}
}

// String lists what differs.
func (d Differences) String() string {
	var s []string
	for _, c := range []struct {
		name string
		is   bool
	}{{"on time", d.OnTime}, {"finals", d.Finals}, {"dropped", d.Dropped}} {
		if c.is {
			s = append(s, c.name)
		}
	}
	if len(s) == 0 {
		return "nothing"
	}
	return strings.Join(s, ", ")
}
