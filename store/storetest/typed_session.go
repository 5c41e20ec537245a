package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

type sessionKey struct {
	key string
	store.Span
}

type sessionModel map[sessionKey]int64

type sessionPart struct {
	t    *testing.T
	v    *store.SessionView[int64]
	m    sessionModel
	q    *store.SessionQueue[int64]
	far  *store.SessionQueue[int64] // follows that far behind
	w    int64                      // the queue was read up to here
	keys int

	compared int
}

func newSessionPart(rng *rand.Rand) *sessionPart {
	return &sessionPart{m: sessionModel{}, keys: 1 + rng.IntN(60)}
}

func (p *sessionPart) spec() store.Spec {
	return store.Spec{ID: "session", Kind: store.Session, KeySchema: "string", ValueSchema: "int64", Changelog: true}
}
func (p *sessionPart) model() any  { return maps.Clone(p.m) }
func (p *sessionPart) set(m any)   { p.m = m.(sessionModel) }
func (p *sessionPart) rolledBack() { p.q, p.far = p.v.Due(p.w), p.v.Due(p.w-sessionFar) }
func (p *sessionPart) restored()   {}

func (p *sessionPart) open(t *testing.T, s *store.State) {
	v, err := store.SessionViewOf(s, "session", codec.Int64())
	check(t, err)
	p.t, p.v = t, v
	p.rolledBack()
}

// add is what an operator does: the record's session swallows those it overlaps.
func (p *sessionPart) add(key string, ts, gap int64) {
	span := store.Span{Start: ts, End: ts + gap}
	over, err := p.v.Overlapping(nil, []byte(key), span)
	check(p.t, err)
	var want []store.Span
	for k := range p.m {
		if k.key == key && k.Start < span.End && span.Start < k.End {
			want = append(want, k.Span)
		}
	}
	slices.SortFunc(want, func(a, b store.Span) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start)) })
	if !slices.Equal(over, want) {
		p.t.Fatalf("%q overlaps %v with %v, want %v", key, span, over, want)
	}
	sum, merged := int64(1), span
	for _, o := range over {
		r, err := p.v.Row([]byte(key), o)
		check(p.t, err)
		if n := p.m[sessionKey{key, o}]; !r.Present || r.Value != n {
			p.t.Fatalf("%q %v: %+v, want %d", key, o, r, n)
		}
		sum += r.Value
		merged.Start, merged.End = min(merged.Start, o.Start), max(merged.End, o.End)
	}
	for i, o := range over {
		delete(p.m, sessionKey{key, o})
		if i > 0 {
			check(p.t, p.v.Remove([]byte(key), o, o.End-1))
		}
	}
	if len(over) > 0 {
		check(p.t, p.v.Move([]byte(key), over[0], merged, sum, ts))
	} else {
		check(p.t, p.v.Put([]byte(key), merged, sum, ts))
	}
	p.m[sessionKey{key, merged}] = sum
}

func (p *sessionPart) step(rng *rand.Rand) {
	key := fmt.Sprint("k", rng.IntN(p.keys))
	switch rng.IntN(30) {
	case 0:
		key = ""
	case 1:
		key = "k\x00\x00x"
	}
	switch op := rng.IntN(20); {
	case op < 12:
		p.add(key, p.w+rng.Int64N(300)-100, 5+rng.Int64N(20))
	case op < 14:
		all, err := p.v.Sessions(nil, []byte(key))
		check(p.t, err)
		if len(all) > 0 {
			s := all[rng.IntN(len(all))]
			check(p.t, p.v.Remove([]byte(key), s, p.w))
			delete(p.m, sessionKey{key, s})
		}
	case op < 17:
		p.due(rng)
	default:
		p.compare()
	}
}

// due moves the queue on: what is due is handed out in order. Some of it is removed, as after its lateness.
func (p *sessionPart) due(rng *rand.Rand) {
	from := p.w
	if rng.IntN(30) == 0 {
		p.q.Close()
		p.q = p.v.Due(from)
	}
	if end := p.q.NextEnd(); end > p.w {
		for k := range p.m {
			if k.End > from && k.End < end {
				p.t.Fatalf("next end %d, but there is %v", end, k)
			}
		}
	}
	p.w += rng.Int64N(60)
	var want []sessionKey
	for k := range p.m {
		if k.End > from && k.End <= p.w {
			want = append(want, k)
		}
	}
	slices.SortFunc(want, func(a, b sessionKey) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.key, b.key), cmp.Compare(a.Start, b.Start))
	})
	n := 0
	for {
		key, s, ok, err := p.q.Next(p.w)
		check(p.t, err)
		if !ok {
			break
		}
		r, err := p.v.Row(key, s)
		check(p.t, err)
		k := sessionKey{string(key), s}
		if n == len(want) || want[n] != k || r.Value != p.m[k] {
			p.t.Fatalf("due in (%d,%d]: number %d is %v %+v, want %v", from, p.w, n, k, r, want)
		}
		n++
		switch rng.IntN(6) {
		case 0:
			check(p.t, p.v.Remove(key, s, p.w))
			delete(p.m, k)
		case 1:
			p.v.Set(r, r.Value+1, p.w)
			p.m[k]++
		case 2: // a later session in the same pass
			span := store.Span{Start: p.w + 1000, End: p.w + 1000 + int64(n)}
			p.m[sessionKey{k.key, span}] = 7
			check(p.t, p.v.Put([]byte(k.key), span, 7, p.w))
		}
	}
	if n != len(want) {
		p.t.Fatalf("due in (%d,%d]: %d sessions, want %v", from, p.w, n, want)
	}
	p.forget(from)
}

func (p *sessionPart) compare() {
	p.t.Helper()
	byKey := map[string]int{}
	for k, n := range p.m {
		byKey[k.key]++
		r, err := p.v.Row([]byte(k.key), k.Span)
		check(p.t, err)
		if !r.Present || r.Value != n {
			p.t.Fatalf("%v: %+v, want %d", k, r, n)
		}
	}
	for key, n := range byKey {
		all, err := p.v.Sessions(nil, []byte(key))
		check(p.t, err)
		if len(all) != n {
			p.t.Fatalf("%q has %v, want %d", key, all, n)
		}
	}
	if p.compared++; p.compared%8 != 0 {
		return // a new queue makes the store list everything anew
	}
	q := p.v.Due(math.MinInt64)
	defer q.Close()
	for n := 0; ; n++ {
		_, _, ok, err := q.Next(math.MaxInt64)
		check(p.t, err)
		if !ok {
			if n != len(p.m) {
				p.t.Fatalf("%d sessions due, want %d", n, len(p.m))
			}
			return
		}
	}
}

const sessionFar = 150

// forget reads the second queue, which hands out what is still there when it comes by, and removes it.
func (p *sessionPart) forget(from int64) {
	upTo := p.w - sessionFar
	var want []sessionKey
	for k := range p.m {
		if k.End > from-sessionFar && k.End <= upTo {
			want = append(want, k)
		}
	}
	slices.SortFunc(want, func(a, b sessionKey) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.key, b.key), cmp.Compare(a.Start, b.Start))
	})
	for n := 0; ; n++ {
		key, s, ok, err := p.far.Next(upTo)
		check(p.t, err)
		if !ok {
			if n != len(want) {
				p.t.Fatalf("to forget in (%d,%d]: %d sessions, want %v", from-sessionFar, upTo, n, want)
			}
			return
		}
		k := sessionKey{string(key), s}
		if n == len(want) || want[n] != k {
			p.t.Fatalf("to forget in (%d,%d]: number %d is %v, want %v", from-sessionFar, upTo, n, k, want)
		}
		check(p.t, p.v.Remove(key, s, p.w))
		delete(p.m, k)
	}
}
