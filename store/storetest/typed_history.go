package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

type versionKey struct {
	key  string
	from int64
}

// versionedModel keeps every version ever accepted; a nil value says that there is none from then on.
type versionedModel struct {
	rows    map[versionKey]*string
	horizon map[string]int64 // of the last put of the key
}

type versionedPart struct {
	t    *testing.T
	v    *store.VersionedView[string]
	m    versionedModel
	now  int64
	keys int
}

func newVersionedPart(rng *rand.Rand) *versionedPart {
	return &versionedPart{m: versionedModel{map[versionKey]*string{}, map[string]int64{}}, keys: 1 + rng.IntN(30)}
}

func (p *versionedPart) spec() store.Spec {
	return store.Spec{ID: "versioned", Kind: store.Versioned, KeySchema: "string", ValueSchema: "string", Changelog: true}
}
func (p *versionedPart) model() any {
	return versionedModel{maps.Clone(p.m.rows), maps.Clone(p.m.horizon)}
}
func (p *versionedPart) set(m any)   { p.m = m.(versionedModel) }
func (p *versionedPart) rolledBack() {}
func (p *versionedPart) restored()   {}

func (p *versionedPart) open(t *testing.T, s *store.State) {
	v, err := store.VersionedViewOf(s, "versioned", codec.String())
	check(t, err)
	p.t, p.v = t, v
}

func (p *versionedPart) step(rng *rand.Rand) {
	key := []string{"", "a", "a\x00", "k"}[rng.IntN(4)] + fmt.Sprint(rng.IntN(p.keys))[1:]
	p.now += rng.Int64N(3)
	horizon := p.now - 50
	t := p.now - rng.Int64N(60)
	switch op := rng.IntN(10); {
	case op < 5:
		var ok bool
		var err error
		var value *string
		if op == 0 {
			ok, err = p.v.Delete([]byte(key), t, horizon)
		} else {
			s := fmt.Sprint(rng.IntN(1000))
			value = &s
			ok, err = p.v.Put([]byte(key), s, t, horizon)
		}
		check(p.t, err)
		if ok != (t >= horizon) {
			p.t.Fatalf("put at %d, horizon %d: %v", t, horizon, ok)
		}
		if ok {
			p.m.rows[versionKey{key, t}] = value
			p.m.horizon[key] = max(p.m.horizon[key], horizon)
		}
	default:
		p.get(key, max(t, p.m.horizon[key]))
	}
}

func (p *versionedPart) get(key string, t int64) {
	p.t.Helper()
	best := versionKey{from: -1 << 62}
	for k := range p.m.rows {
		if k.key == key && k.from <= t && k.from > best.from {
			best = k
		}
	}
	v, from, ok, err := p.v.GetAsOf([]byte(key), t)
	check(p.t, err)
	want := p.m.rows[best]
	if ok != (want != nil) || ok && (v != *want || from != best.from) {
		p.t.Fatalf("%q as of %d: %q from %d %v, want %v of %v", key, t, v, from, ok, want, best)
	}
}

func (p *versionedPart) compare() {
	for k := range p.m.rows {
		p.get(k.key, max(k.from, p.m.horizon[k.key]))
	}
}

type listModel map[string][]string

type listPart struct {
	t *testing.T
	v *store.ListView[string]
	m listModel
}

func newListPart() *listPart { return &listPart{m: listModel{}} }

func (p *listPart) spec() store.Spec {
	return store.Spec{ID: "list", Kind: store.List, KeySchema: "string", ValueSchema: "string", Changelog: true}
}
func (p *listPart) model() any {
	m := listModel{}
	for k, l := range p.m {
		m[k] = slices.Clone(l)
	}
	return m
}
func (p *listPart) set(m any)   { p.m = m.(listModel) }
func (p *listPart) rolledBack() {}
func (p *listPart) restored()   {}

func (p *listPart) open(t *testing.T, s *store.State) {
	v, err := store.ListViewOf(s, "list", codec.String())
	check(t, err)
	p.t, p.v = t, v
}

func (p *listPart) step(rng *rand.Rand) {
	key := []string{"", "a", "a\x00", "a\x00\x01b"}[rng.IntN(4)]
	switch op := rng.IntN(10); {
	case op < 6:
		val := fmt.Sprint(rng.IntN(100))[1:]
		check(p.t, p.v.Append([]byte(key), val, 1))
		p.m[key] = append(p.m[key], val)
	case op < 8:
		n := rng.IntN(4)
		check(p.t, p.v.PopFront([]byte(key), n, 1))
		p.m[key] = p.m[key][min(n, len(p.m[key])):]
	case op < 9 && rng.IntN(4) == 0:
		check(p.t, p.v.Clear([]byte(key), 1))
		delete(p.m, key)
	default:
		p.values(key)
	}
}

func (p *listPart) values(key string) {
	var got []string
	check(p.t, p.v.Values([]byte(key), func(v string, _ int64) error {
		got = append(got, v)
		return nil
	}))
	n, err := p.v.Len([]byte(key))
	check(p.t, err)
	if !slices.Equal(got, p.m[key]) || n != len(got) {
		p.t.Fatalf("%q: %d %q, want %q", key, n, got, p.m[key])
	}
}

func (p *listPart) compare() {
	for k := range p.m {
		p.values(k)
	}
}
