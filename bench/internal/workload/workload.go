// Package workload defines the inputs of the benchmarks: record layouts, seeded generators and the loader. A generator
// is a pure function of workload, size and seed, so that a checker computes what the loader has written instead of
// reading it back. It must not know the systems that are measured. It has no goroutines.
//
//	key    0        8        16
//	       | mix(id)| id     |                      id: key number; mix scatters it
//	value  0        8        16       24                            100
//	       | time   | seq    | amount | words, 76 bytes or more      |
//
// All integers are 64 bits, big-endian; time is in ms and is also the record's timestamp.
package workload

import (
	"fmt"
	"slices"
	"strings"
)

// The layout of all inputs.
const (
	Partitions = 4
	KeySize    = 16
	ValueSize  = 100 // unless the workload says otherwise

	// Base is the event time of the first record, 2026-01-01T00:00Z: the same whenever the input is made.
	Base int64 = 1767225600000
	// Kept is for how many minutes WINDOWS keeps a window behind its end, and how many windows its input covers.
	Kept = 200
)

// The parameters of W6.
const (
	Items      = 100_000 // first grouping: amount mod Items
	Categories = 1_000   // second grouping: item mod Categories
)

// Hop is how far the windows of H10 and H600 are apart, in ms.
const Hop = 1000

// Windows is how many windows a record of H10 and H600 belongs to, 0 for other workloads.
func (s Spec) Windows() int64 {
	switch s.Name {
	case "H10":
		return 10
	case "H600":
		return 600
	}
	return 0
}

// Spec is one workload.
type Spec struct {
	Name string
	What string
	N    int     // records of the input unless told otherwise
	Keys uint64  // distinct keys
	Zipf float64 // skew of the keys, 0 for uniform
	Span int64   // event time the input covers, ms
	Fill bool    // every key once, in order of the key numbers, before any comes again
	Size int     // bytes of a value, at least 24; 0: ValueSize
}

func all() []Spec {
	const twentyMinutes = 1_200_000
	return []Spec{
		{Name: "W1", What: "keep even amounts, add 1 to the amount", N: 10_000_000, Keys: 1_000_000, Span: twentyMinutes},
		{Name: "W2", What: "count by key, 1 M uniform keys", N: 5_000_000, Keys: 1_000_000, Span: twentyMinutes},
		{Name: "W2Z", What: "count by key, 100 k keys Zipf 1.1", N: 5_000_000, Keys: 100_000, Zipf: 1.1, Span: twentyMinutes},
		{Name: "W3", What: "count, sum, min, max per key and minute, final result", N: 5_000_000, Keys: 100_000, Zipf: 1.1, Span: twentyMinutes},
		{Name: "W5", What: "count and sum per session of a user, every update", N: 2_500_000, Keys: 50_000, Span: 3 * twentyMinutes / 2},
		{Name: "W6", What: "re-key and count per item, re-key and sum per category", N: 2_500_000, Keys: 1_000_000, Span: twentyMinutes},
		{Name: "H10", What: "count per key in windows of 10 s that hop by 1 s, final result", N: 5_000_000, Keys: 1000, Span: 1_000_000},
		{Name: "H600", What: "count per key in windows of 600 s that hop by 1 s, final result", N: 5_000_000, Keys: 1000, Span: 1_000_000},
		{Name: "STATE", What: "keep the last value of every key", N: 1_000_000, Keys: 1_000_000, Span: twentyMinutes, Fill: true},
		{Name: "WINDOWS", What: "keep the last value of every key and minute, for 200 minutes", N: 1_000_000, Keys: 1_000_000, Span: Kept * 60_000, Fill: true},
		{Name: "W10", What: "W1 with paced input, for latency", Keys: 1_000_000},
	}
}

// Names returns the names of all workloads.
func Names() []string {
	var names []string
	for _, s := range all() {
		names = append(names, s.Name)
	}
	return names
}

// Find returns the workload of that name.
func Find(name string) (Spec, error) {
	specs := all()
	i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name })
	if i < 0 {
		return Spec{}, fmt.Errorf("workload: no workload %q, want one of %s", name, strings.Join(Names(), ", "))
	}
	return specs[i], nil
}

// Value returns the bytes of a value.
func (s Spec) Value() int {
	if s.Size == 0 {
		return ValueSize
	}
	return s.Size
}

// Input returns the name of the input topic.
func (s Spec) Input() string { return strings.ToLower(s.Name) + ".in" }

// Output returns the name of the output topic.
func (s Spec) Output() string { return strings.ToLower(s.Name) + ".out" }
