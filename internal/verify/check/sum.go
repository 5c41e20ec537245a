package check

import (
	"encoding/binary"
	"slices"
)

// Sum checks the workload sum: output i of a partition has the key of input i and the sum up to it.
type Sum struct {
	parts map[int32]*sumPart
	keys  map[string]*sumKey
	r     Report
}

type sumPart struct {
	inputs [][]byte // keys
	out    int      // outputs seen
}

// sumKey holds the running sums of a key. Amounts are positive, so that a sum names its place.
type sumKey struct {
	sums []int64
	next int
}

// NewSum returns a checker that has seen nothing.
func NewSum() *Sum { return &Sum{parts: make(map[int32]*sumPart), keys: make(map[string]*sumKey)} }

func (s *Sum) part(p int32) *sumPart {
	if s.parts[p] == nil {
		s.parts[p] = new(sumPart)
	}
	return s.parts[p]
}

func (s *Sum) key(k []byte) *sumKey {
	st := s.keys[string(k)]
	if st == nil {
		st = new(sumKey)
		s.keys[string(k)] = st
	}
	return st
}

// Input takes the next record of an input partition.
func (s *Sum) Input(r Record) {
	p, k := s.part(r.Partition), s.key(r.Key)
	p.inputs = append(p.inputs, slices.Clone(r.Key))
	var sum int64
	if n := len(k.sums); n > 0 {
		sum = k.sums[n-1]
	}
	k.sums = append(k.sums, sum+int64(binary.BigEndian.Uint64(r.Value)))
}

// Output takes the next committed record of an output partition. Its inputs must have been shown before.
func (s *Sum) Output(r Record) {
	p, k := s.part(r.Partition), s.key(r.Key)
	sum := int64(binary.BigEndian.Uint64(r.Value))
	i, ok := slices.BinarySearch(k.sums, sum)
	switch {
	case !ok:
		s.r.Wrongly("sum output %s: %d is no sum of a prefix of the inputs", r.at(), sum)
		return
	case i < k.next:
		s.r.duplicated("sum output %s: update %d of the key, %d were out", r.at(), i+1, k.next)
		return
	case i > k.next:
		s.r.lost(i-k.next, "sum output %s: update %d of the key, only %d were out", r.at(), i+1, k.next)
	}
	k.next = i + 1
	if p.out >= len(p.inputs) || string(p.inputs[p.out]) != string(r.Key) {
		s.r.Wrongly("sum output %s: number %d of its partition is not of the key of that input", r.at(), p.out)
		// Count on from the input it may belong to, so that one gap is one finding.
		for j := p.out; j < len(p.inputs); j++ {
			if string(p.inputs[j]) == string(r.Key) {
				p.out = j
				break
			}
		}
	}
	p.out++
}

// Done reports, once all inputs must have had their effect.
func (s *Sum) Done() *Report {
	out := s.Now()
	for name, k := range s.keys {
		if k.next < len(k.sums) {
			out.lost(len(k.sums)-k.next, "sum key %s: %d updates, input has %d", name, k.next, len(k.sums))
		}
	}
	return out
}

// Now reports what has been found so far.
func (s *Sum) Now() *Report {
	out := new(Report)
	out.Add(&s.r)
	return out
}
