package storetest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

// paned is a windowed value: pane state before the value.
type paned struct{ state, value string }

type panedCodec struct{}

func (panedCodec) Append(dst []byte, p paned) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(len(p.state)))
	return append(append(dst, p.state...), p.value...), nil
}

func (panedCodec) Decode(b []byte) (paned, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return paned{}, fmt.Errorf("bad value %q", b)
	}
	at := size + int(n)
	return paned{string(b[size:at]), string(b[at:])}, nil
}

func (panedCodec) JSON(dst, b []byte) ([]byte, error) { return dst, nil }
func (panedCodec) Schema() string                     { return "paned" }

var _ codec.Codec[paned] = panedCodec{}

// Windows of 10 ms, aligned.
const (
	windowSize = 10
	firstFloor = -200
)

func windowSpec(id string) store.Spec {
	return store.Spec{ID: id, Kind: store.Window, KeySchema: "string", ValueSchema: "paned", Changelog: true,
		Layout: store.WindowLayout(func(e int64) int64 { return e - windowSize }, func(s int64) int64 { return s + windowSize }, true)}
}

type windowKey struct {
	end int64
	key string
}

type windowModel struct {
	rows  map[windowKey]paned
	floor int64 // windows up to this end have expired
}

type windowPart struct {
	t    *testing.T
	v    *store.WindowView[paned]
	m    windowModel
	keys int
}

func newWindowPart(rng *rand.Rand) *windowPart {
	return &windowPart{m: windowModel{rows: map[windowKey]paned{}, floor: firstFloor}, keys: 1 + rng.IntN(200)}
}

func (p *windowPart) spec() store.Spec { return windowSpec("window") }
func (p *windowPart) model() any       { return windowModel{maps.Clone(p.m.rows), p.m.floor} }
func (p *windowPart) set(m any)        { p.m = m.(windowModel) }

// rolledBack expires only what no floor was kept for: the start.
func (p *windowPart) rolledBack() {
	if p.m.floor == firstFloor {
		p.v.Expire(firstFloor)
	}
}
func (p *windowPart) restored() { p.v.Expire(p.m.floor) }

func (p *windowPart) open(t *testing.T, s *store.State) {
	v, err := store.WindowViewOf(s, "window", panedCodec{})
	check(t, err)
	p.t, p.v = t, v
}

func (p *windowPart) step(rng *rand.Rand) {
	end := p.m.floor - 2*windowSize + windowSize*rng.Int64N(11)
	key := fmt.Sprint("k", rng.IntN(p.keys))
	if rng.IntN(20) == 0 {
		key = "" // A-EMPTY-KEY
	}
	switch op := rng.IntN(20); {
	case op < 14:
		r, err := p.v.Row(end, []byte(key))
		if end <= p.m.floor {
			if err != store.ErrExpired {
				p.t.Fatalf("window up to %d, expired up to %d: %v", end, p.m.floor, err)
			}
			if _, ok, err := p.v.Get(end, []byte(key)); ok || err != nil {
				p.t.Fatalf("get of an expired row: %v %v", ok, err)
			}
			return
		}
		check(p.t, err)
		want, ok := p.m.rows[windowKey{end, key}]
		if r.Present != ok || r.Value != want {
			p.t.Fatalf("%d/%s: %+v, want %v %v", end, key, r, want, ok)
		}
		if op == 0 {
			p.v.Remove(r, end-1)
			delete(p.m.rows, windowKey{end, key})
			return
		}
		val := paned{value: fmt.Sprint(rng.IntN(1000))}
		if rng.IntN(2) == 0 {
			val.state = string([]byte{byte(rng.IntN(256)), 1})
		}
		p.v.Set(r, val, end-1)
		p.m.rows[windowKey{end, key}] = val
	case op < 18:
		p.scan(end)
	case op == 18:
		p.v.Expire(end)
		p.expire(end)
	default:
		p.compare()
	}
}

func (p *windowPart) expire(end int64) {
	p.m.floor = max(p.m.floor, end)
	maps.DeleteFunc(p.m.rows, func(k windowKey, _ paned) bool { return k.end <= p.m.floor })
}

func (p *windowPart) scan(end int64) {
	p.t.Helper()
	var want []string
	for k := range p.m.rows {
		if k.end == end {
			want = append(want, k.key)
		}
	}
	slices.Sort(want)
	c, err := p.v.ScanEnd(end)
	check(p.t, err)
	n := 0
	for c.Next() {
		val, err := c.Value()
		check(p.t, err)
		if n == len(want) || want[n] != string(c.Key()) || val != p.m.rows[windowKey{end, want[n]}] || c.Time() != end-1 {
			p.t.Fatalf("scan of %d: row %d is %q %v at %d, want %q", end, n, c.Key(), val, c.Time(), want)
		}
		n++
	}
	check(p.t, c.Close())
	if n != len(want) {
		p.t.Fatalf("scan of %d: %d rows, want %d", end, n, len(want))
	}
}

func (p *windowPart) compare() {
	p.t.Helper()
	ends := p.v.Ends(nil, -1e9, 1e9)
	if !slices.IsSorted(ends) {
		p.t.Fatalf("ends: %d", ends)
	}
	for k := range p.m.rows {
		if !slices.Contains(ends, k.end) {
			p.t.Fatalf("ends: %d, without %d", ends, k.end)
		}
	}
	if len(ends) > 0 && ends[0] <= p.m.floor {
		p.t.Fatalf("ends: %d, expired up to %d", ends, p.m.floor)
	}
	for end := p.m.floor - 3*windowSize; end < p.m.floor+12*windowSize; end += windowSize {
		p.scan(end)
	}
}
