package store

import (
	"bytes"
	"slices"
)

// layer finds rows in a stretch of committed generations.
//
// A committed row is in the view as long as the view keeps it, so nobody looks for it here, and most generations of a
// busy task could be committed without any look-up structure at all. Therefore a row is indexed when it leaves its view,
// not when it is committed: the rule is that the newest committed position of every key of the layer is in the row of
// the view or in the index. (Indexing at the commit was the first design; it cost as much as encoding.)
type layer struct {
	parts []part // by store
}

type part struct {
	index table
	refs  []uint64   // positions, referred to by index
	runs  [][]uint64 // sorted positions for scans, older first, sizes at least halving
	seen  uint32     // last generation that is in runs
}

// newLayer returns the layer of the generations above seen.
func newLayer(stores int, seen uint32) *layer {
	l := &layer{parts: make([]part, stores)}
	for i := range l.parts {
		l.parts[i].seen = seen
	}
	return l
}

// put notes that pos is the newest position of its key.
func (p *part) put(gs *gens, hash uint32, pos uint64) {
	key := gs.key(pos)
	if i, ok := p.find(gs, hash, key); ok {
		p.refs[i] = pos
		return
	}
	p.index.insert(hash, uint32(len(p.refs)))
	p.refs = append(p.refs, pos)
}

// find returns the index in refs of a key.
func (p *part) find(gs *gens, hash uint32, key []byte) (int, bool) {
	if p.index.n == 0 {
		return 0, false
	}
	for i := hash & p.index.mask; ; i = (i + 1) & p.index.mask {
		s := p.index.slots[i]
		if s == 0 {
			return 0, false
		}
		if uint32(s>>32) == hash {
			if ref := uint32(s) - 1; bytes.Equal(gs.key(p.refs[ref]), key) {
				return int(ref), true
			}
		}
	}
}

// sort brings the runs up to the generations up to last. Runs of like size are merged, so that every position
// is merged a logarithmic number of times.
func (p *part) sort(s *State, store int, last uint32) {
	gs := &s.committedGens
	for no := max(p.seen+1, gs.base); no <= last; no++ {
		g := gs.list[no-gs.base]
		if g == nil || g.start[store] == g.start[store+1] {
			continue
		}
		p.runs = append(p.runs, s.sorted(g, store))
		for n := len(p.runs); n > 1 && len(p.runs[n-2]) < 2*len(p.runs[n-1]); n = len(p.runs) {
			p.runs = append(p.runs[:n-2], mergeRuns(p.runs[n-2], p.runs[n-1], gs.key, true))
		}
	}
	p.seen = max(p.seen, last)
}

// mergeRuns merges two sorted runs. With unique the entry of b replaces that of a where the keys are equal.
func mergeRuns[R any](a, b []R, key func(R) []byte, unique bool) []R {
	out := make([]R, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		c := bytes.Compare(key(a[0]), key(b[0]))
		if c < 0 {
			out = append(out, a[0])
			a = a[1:]
			continue
		}
		if c == 0 && unique {
			a = a[1:]
		}
		out = append(out, b[0])
		b = b[1:]
	}
	return append(append(out, a...), b...)
}

// cutRun returns the part of a sorted run with lo <= key < hi.
func cutRun[R any](run []R, lo, hi []byte, key func(R) []byte) []R {
	cmp := func(r R, k []byte) int { return bytes.Compare(key(r), k) }
	if hi != nil {
		end, _ := slices.BinarySearchFunc(run, hi, cmp)
		run = run[:end]
	}
	start, _ := slices.BinarySearchFunc(run, lo, cmp)
	return run[start:]
}
