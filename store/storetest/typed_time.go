package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

type timerModel map[[2]string]int64

type timerPart struct {
	t    *testing.T
	v    *store.TimerView
	m    timerModel
	w    int64
	keys int
}

func newTimerPart(rng *rand.Rand) *timerPart {
	return &timerPart{m: timerModel{}, keys: 1 + rng.IntN(100)}
}

func (p *timerPart) spec() store.Spec {
	return store.Spec{ID: "timers", Kind: store.Timers, KeySchema: "string", Changelog: true}
}
func (p *timerPart) model() any  { return maps.Clone(p.m) }
func (p *timerPart) set(m any)   { p.m = m.(timerModel) }
func (p *timerPart) rolledBack() {}
func (p *timerPart) restored()   {}

func (p *timerPart) open(t *testing.T, s *store.State) {
	v, err := store.TimerViewOf(s, "timers")
	check(t, err)
	p.t, p.v = t, v
}

func (p *timerPart) step(rng *rand.Rand) {
	id := [2]string{fmt.Sprint("k\x00"[:1+rng.IntN(2)], rng.IntN(p.keys)), []string{"", "a", "\x00\x01"}[rng.IntN(3)]}
	switch op := rng.IntN(20); {
	case op < 12:
		t := p.w + rng.Int64N(200) - 20
		check(p.t, p.v.Set([]byte(id[0]), []byte(id[1]), t))
		p.m[id] = t
	case op < 14:
		check(p.t, p.v.Delete([]byte(id[0]), []byte(id[1])))
		delete(p.m, id)
	case op < 18:
		p.w += rng.Int64N(30)
		p.pop(rng)
	default:
		t, ok, err := p.v.Get([]byte(id[0]), []byte(id[1]))
		check(p.t, err)
		if want, is := p.m[id]; ok != is || t != want {
			p.t.Fatalf("%q: %d %v, want %d %v", id, t, ok, want, is)
		}
	}
}

// pop takes what is due, sometimes not all of it, and sometimes sets others meanwhile.
func (p *timerPart) pop(rng *rand.Rand) {
	for n := 0; n < 1000 && rng.IntN(50) > 0; n++ {
		var first [2]string
		has := false
		for id, t := range p.m {
			if t <= p.w && (!has || cmp.Or(cmp.Compare(t, p.m[first]), cmp.Compare(id[0], first[0]), cmp.Compare(id[1], first[1])) < 0) {
				first, has = id, true
			}
		}
		key, tag, t, ok, err := p.v.PopDue(p.w)
		check(p.t, err)
		if ok != has || ok && (string(key) != first[0] || string(tag) != first[1] || t != p.m[first]) {
			p.t.Fatalf("pop up to %d: %q %q %d %v, want %q %d %v", p.w, key, tag, t, ok, first, p.m[first], has)
		}
		if !ok {
			return
		}
		delete(p.m, first)
		if rng.IntN(4) == 0 {
			again := p.w + rng.Int64N(40) - 30
			check(p.t, p.v.Set([]byte(first[0]), []byte(first[1]), again))
			p.m[first] = again
		}
	}
}

func (p *timerPart) compare() {
	for id, want := range p.m {
		t, ok, err := p.v.Get([]byte(id[0]), []byte(id[1]))
		check(p.t, err)
		if !ok || t != want {
			p.t.Fatalf("%q: %d %v, want %d", id, t, ok, want)
		}
	}
	t, ok, err := p.v.NextDue()
	check(p.t, err)
	for _, want := range p.m {
		if !ok || t > want {
			p.t.Fatalf("next due %d %v, want %d at most", t, ok, want)
		}
	}
}

type dedupKey struct {
	bucket uint32
	hash   [16]byte
}

type dedupModel struct {
	ids   map[dedupKey]bool
	floor uint32
}

type dedupPart struct {
	t *testing.T
	v *store.DedupView
	m dedupModel
}

func newDedupPart() *dedupPart { return &dedupPart{m: dedupModel{ids: map[dedupKey]bool{}}} }

func (p *dedupPart) spec() store.Spec {
	return store.Spec{ID: "dedup", Kind: store.Dedup, KeySchema: "hash", Changelog: true}
}
func (p *dedupPart) model() any  { return dedupModel{maps.Clone(p.m.ids), p.m.floor} }
func (p *dedupPart) set(m any)   { p.m = m.(dedupModel) }
func (p *dedupPart) rolledBack() {}
func (p *dedupPart) restored()   { p.v.Expire(p.m.floor) }

func (p *dedupPart) open(t *testing.T, s *store.State) {
	v, err := store.DedupViewOf(s, "dedup")
	check(t, err)
	p.t, p.v = t, v
}

func (p *dedupPart) step(rng *rand.Rand) {
	k := dedupKey{bucket: p.m.floor + uint32(rng.IntN(4)), hash: [16]byte{byte(rng.IntN(50)), 1}}
	if rng.IntN(20) == 0 {
		p.m.floor++
		p.v.Expire(p.m.floor)
		maps.DeleteFunc(p.m.ids, func(k dedupKey, _ bool) bool { return k.bucket < p.m.floor })
		return
	}
	if k.bucket > 0 && rng.IntN(4) == 0 {
		k.bucket--
	}
	if k.bucket < p.m.floor {
		if ok, err := p.v.Seen(k.bucket, &k.hash); ok || err != nil {
			p.t.Fatalf("seen in an expired bucket: %v %v", ok, err)
		}
		if _, err := p.v.Add(k.bucket, &k.hash, 1); err != store.ErrExpired {
			p.t.Fatalf("add to an expired bucket: %v", err)
		}
		return
	}
	added, err := p.v.Add(k.bucket, &k.hash, int64(k.bucket))
	check(p.t, err)
	if added == p.m.ids[k] {
		p.t.Fatalf("%v: added %v", k, added)
	}
	p.m.ids[k] = true
}

func (p *dedupPart) compare() {
	for b := p.m.floor; b < p.m.floor+5; b++ {
		for h := range 50 {
			k := dedupKey{b, [16]byte{byte(h), 1}}
			ok, err := p.v.Seen(k.bucket, &k.hash)
			check(p.t, err)
			if ok != p.m.ids[k] {
				p.t.Fatalf("%v: seen %v", k, ok)
			}
		}
	}
}

type expiringRow struct {
	value string
	until int64
}

type expiringModel map[string]expiringRow

type expiringPart struct {
	t   *testing.T
	v   *store.ExpiringView[string]
	m   expiringModel
	now int64
}

func newExpiringPart() *expiringPart { return &expiringPart{m: expiringModel{}} }

func (p *expiringPart) spec() store.Spec {
	return store.Spec{ID: "expiring", Kind: store.Expiring, KeySchema: "string", ValueSchema: "string", Changelog: true}
}
func (p *expiringPart) model() any  { return maps.Clone(p.m) }
func (p *expiringPart) set(m any)   { p.m = m.(expiringModel) }
func (p *expiringPart) rolledBack() {}
func (p *expiringPart) restored()   {}

func (p *expiringPart) open(t *testing.T, s *store.State) {
	v, err := store.ExpiringViewOf(s, "expiring", codec.String())
	check(t, err)
	p.t, p.v = t, v
}

func (p *expiringPart) step(rng *rand.Rand) {
	key := fmt.Sprint(rng.IntN(60))[1:]
	switch op := rng.IntN(20); {
	case op < 10:
		row := expiringRow{fmt.Sprint(rng.IntN(100)), p.now + rng.Int64N(100) - 5}
		check(p.t, p.v.Put([]byte(key), row.value, p.now, row.until))
		p.m[key] = row
	case op < 12:
		check(p.t, p.v.Delete([]byte(key), p.now))
		delete(p.m, key)
	case op < 16:
		p.now += rng.Int64N(20)
		var want, got []string
		last := int64(-1 << 62)
		for k, row := range p.m {
			if row.until <= p.now {
				want = append(want, k)
			}
		}
		for {
			k, ok, err := p.v.PopExpired(p.now, p.now)
			check(p.t, err)
			if !ok {
				break
			}
			if p.m[string(k)].until < last {
				p.t.Fatalf("%q expires late", k)
			}
			last = p.m[string(k)].until
			got = append(got, string(k))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			p.t.Fatalf("expired at %d: %q, want %q", p.now, got, want)
		}
		for _, k := range got {
			delete(p.m, k)
		}
	default:
		p.get(key)
	}
}

func (p *expiringPart) get(key string) {
	v, ok, err := p.v.Get([]byte(key), p.now)
	check(p.t, err)
	row, is := p.m[key]
	if is = is && p.now < row.until; ok != is || ok && v != row.value {
		p.t.Fatalf("%q at %d: %q %v, want %v", key, p.now, v, ok, row)
	}
}

func (p *expiringPart) compare() {
	for k := range p.m {
		p.get(k)
	}
}
