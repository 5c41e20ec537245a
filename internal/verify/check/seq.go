package check

import (
	"encoding/binary"
	"encoding/json/v2"

	"github.com/tidemark/tidemark/internal/verify/workload"
)

// Seq checks the workload seq. Every committed tally must be that of 1..Count, and counts never go back.
type Seq struct {
	keys map[string]*seqKey
	r    Report
}

type seqKey struct {
	max  int64    // inputs seen: 1..max
	sums []uint64 // checksum of 1..i
	last int64
}

// NewSeq returns a checker that has seen nothing.
func NewSeq() *Seq { return &Seq{keys: make(map[string]*seqKey)} }

func (s *Seq) key(k []byte) *seqKey {
	st := s.keys[string(k)]
	if st == nil {
		st = &seqKey{sums: []uint64{0}}
		s.keys[string(k)] = st
	}
	return st
}

// Input takes the next record of an input partition.
func (s *Seq) Input(r Record) {
	k := s.key(r.Key)
	n := int64(binary.BigEndian.Uint64(r.Value))
	if n != k.max+1 {
		s.r.Wrongly("seq input %s: number %d follows %d", r.at(), n, k.max)
		return
	}
	k.max = n
	k.sums = append(k.sums, k.sums[n-1]^workload.Hash(n))
}

// Output takes the next committed record of an output partition. Its inputs must have been shown before.
func (s *Seq) Output(r Record) {
	k := s.key(r.Key)
	var t workload.Tally
	if err := json.Unmarshal(r.Value, &t); err != nil {
		s.r.Wrongly("seq output %s: %v", r.at(), err)
		return
	}
	switch {
	case t.Count > t.Max:
		s.r.duplicated("seq output %s: %d numbers, the highest is %d", r.at(), t.Count, t.Max)
	case t.Count < t.Max:
		s.r.lost(int(t.Max-t.Count), "seq output %s: %d numbers, the highest is %d", r.at(), t.Count, t.Max)
	case t.Max > k.max:
		s.r.Wrongly("seq output %s: number %d, input has %d", r.at(), t.Max, k.max)
	case t.Xor != k.sums[t.Max]:
		s.r.Wrongly("seq output %s: checksum of 1..%d is %x, want %x", r.at(), t.Max, t.Xor, k.sums[t.Max])
	case t.Count < k.last:
		s.r.Wrongly("seq output %s: count went back from %d to %d", r.at(), k.last, t.Count)
	}
	k.last = t.Count
}

// Done reports, once all inputs must have had their effect.
func (s *Seq) Done() *Report {
	out := s.Now()
	for name, k := range s.keys {
		if k.last < k.max {
			out.lost(int(k.max-k.last), "seq key %s: last count %d, input has %d", name, k.last, k.max)
		}
	}
	return out
}

// Now reports what has been found so far.
func (s *Seq) Now() *Report {
	out := new(Report)
	out.Add(&s.r)
	return out
}
