package watermark

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func settings(t testing.TB, opts ...Option) Settings {
	t.Helper()
	s, err := New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// swing is a generator whose watermark falls: it is the last time observed.
type swing struct{ w int64 }

func (g *swing) Observe(r *Record)        { g.w = r.Time }
func (g *swing) Watermark() int64         { return g.w }
func (g *swing) Append(dst []byte) []byte { return fmt.Appendf(dst, "%d", g.w) }
func (g *swing) Restore(b []byte) error {
	_, err := fmt.Sscan(string(b), &g.w)
	return err
}

func newSwing() Generator { return &swing{w: Unknown} }

// marker takes W from the values that are negative.
func marker(v int) (time.Time, bool) { return time.UnixMilli(int64(-v)), v < 0 }

// strategies are all of them, each with a definition that looks at the whole
// prefix of the partition.
var strategies = []struct {
	opt  Option
	name string
	w    func(prefix []Record) int64
}{
	{Ascending(), "ascending", behind(0)},
	{OutOfOrderness(0), "bounded out-of-orderness 0s", behind(0)},
	{OutOfOrderness(30 * time.Millisecond), "bounded out-of-orderness 30ms", behind(30)},
	{OutOfOrderness(math.MaxInt64 / 1_000_000 * 1_000_000), "bounded out-of-orderness 2562047h47m16.854s", behind(math.MaxInt64 / 1_000_000)},
	{StreamTime(), "stream time", behind(0)},
	{AppendTime(), "append time", highestOf(func(r *Record) int64 { return below(r.Appended, 0) })},
	{FromHeader("w"), "header w", highestOf(func(r *Record) int64 {
		b, _ := r.Header("w")
		w, _ := ParseHeader(b)
		return w
	})},
	{Punctuated("marker", marker), "punctuated marker", highestOf(func(r *Record) int64 {
		if v := r.Value.(int); v < 0 {
			return int64(-v)
		}
		return Unknown
	})},
	{Custom("swing", newSwing), "custom swing", highestOf(func(r *Record) int64 { return r.Time })},
}

func highestOf(f func(r *Record) int64) func(prefix []Record) int64 {
	return func(prefix []Record) int64 {
		w := int64(Unknown)
		for i := range prefix {
			w = max(w, f(&prefix[i]))
		}
		return w
	}
}

func behind(delay int64) func(prefix []Record) int64 {
	return highestOf(func(r *Record) int64 { return below(r.Time, delay) })
}

// randomRecord returns a record around a time that rises with n, or one at an edge.
func randomRecord(rng *rand.Rand, n int) Record {
	at := int64(n) + rng.Int64N(60) - 100
	if rng.IntN(200) == 0 {
		at = edges[rng.IntN(4)]
	}
	r := Record{Time: at, Appended: at + rng.Int64N(5), Value: int(rng.Int64N(50)) - min(n, 10)}
	header := AppendHeader(nil, at-5)
	switch rng.IntN(4) {
	case 0:
		header = header[:rng.IntN(8)]
	case 1:
		header = nil
	}
	r.Header = func(key string) ([]byte, bool) { return header, key == "w" && header != nil }
	return r
}

// Every generator agrees with its definition, also when it is replaced by one
// restored from its state, and never falls.
func TestGenerators(t *testing.T) {
	seed := rand.Uint64()
	for _, c := range strategies {
		t.Run(fmt.Sprintf("%s/seed=%d", c.name, seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			s := settings(t, c.opt)
			if s.Name != c.name {
				t.Errorf("name %q", s.Name)
			}
			g := s.New()
			if w := g.Watermark(); w != Unknown {
				t.Fatalf("W %d before the first record", w)
			}
			var prefix []Record
			last := int64(Unknown)
			for n := range 2000 {
				prefix = append(prefix, randomRecord(rng, n))
				g.Observe(&prefix[n])
				w := g.Watermark()
				if n%50 == 0 || w < last {
					if want := c.w(prefix); w != want {
						t.Fatalf("after %d records: %d, want %d", n+1, w, want)
					}
				}
				last = w
				if rng.IntN(50) == 0 {
					state := g.Append([]byte("x"))
					g = s.New()
					if err := g.Restore(state[1:]); err != nil || g.Watermark() != w {
						t.Fatalf("restored at %d as %d, %v", w, g.Watermark(), err)
					}
					if again := g.Append([]byte("x")); !bytes.Equal(state, again) {
						t.Fatalf("state %x, restored %x", state, again)
					}
				}
			}
		})
	}
}

// WM-OVERFLOW
func TestGeneratorOverflow(t *testing.T) {
	for _, c := range []struct {
		opt  Option
		time int64
		want int64
	}{
		{Ascending(), math.MaxInt64, math.MaxInt64 - 1},
		{Ascending(), math.MinInt64, Unknown},
		{Ascending(), math.MinInt64 + 1, Unknown},
		{OutOfOrderness(time.Duration(math.MaxInt64 / 1_000_000 * 1_000_000)), math.MinInt64 + 10, Unknown},
		{OutOfOrderness(time.Duration(math.MaxInt64 / 1_000_000 * 1_000_000)), math.MaxInt64, math.MaxInt64 - math.MaxInt64/1_000_000 - 1},
		{Punctuated("end", func(int) (time.Time, bool) { return time.Unix(1<<62, 0), true }), 5, Finished},
	} {
		s := settings(t, c.opt)
		g := s.New()
		g.Observe(&Record{Time: c.time, Value: 0})
		if got := g.Watermark(); got != c.want {
			t.Errorf("%s at %d: %d, want %d", s.Name, c.time, got, c.want)
		}
	}
}

// TS-NEG-POLICY: a negative time is a time like any other.
func TestGeneratorNegative(t *testing.T) {
	g := settings(t, OutOfOrderness(10*time.Millisecond)).New()
	for _, c := range [][2]int64{{-1000, -1011}, {-2000, -1011}, {-1, -12}, {0, -11}, {20, 9}} {
		if g.Observe(&Record{Time: c[0]}); g.Watermark() != c[1] {
			t.Errorf("W %d after %d, want %d", g.Watermark(), c[0], c[1])
		}
	}
}

// A state goes over to another strategy without W falling.
func TestGeneratorOtherStrategy(t *testing.T) {
	for _, from := range strategies {
		g := settings(t, from.opt).New()
		rng := rand.New(rand.NewPCG(1, 0))
		for n := range 100 {
			r := randomRecord(rng, n)
			g.Observe(&r)
		}
		w := g.Watermark()
		for _, to := range strategies {
			g2 := settings(t, to.opt).New()
			if err := g2.Restore(g.Append(nil)); err != nil {
				t.Errorf("%s to %s: %v", from.name, to.name, err)
			}
			if g2.Watermark() < w {
				t.Errorf("%s to %s: W falls from %d to %d", from.name, to.name, w, g2.Watermark())
			}
			for n := range 50 {
				r := randomRecord(rng, 100+n)
				if g2.Observe(&r); g2.Watermark() < w {
					t.Fatalf("%s to %s: W falls from %d to %d at the next records", from.name, to.name, w, g2.Watermark())
				}
			}
		}
	}
}

func TestGeneratorState(t *testing.T) {
	g := settings(t, OutOfOrderness(30*time.Millisecond)).New()
	g.Observe(&Record{Time: 1000})
	if got, want := fmt.Sprintf("%x", g.Append(nil)), "01d00f920f"; got != want { // version, 1000, 969
		t.Errorf("state %s, want %s", got, want)
	}
	for _, c := range strategies {
		g := settings(t, c.opt).New()
		for _, b := range [][]byte{nil, {1}, {1, 0x80}, {1, 0x80, 0}} {
			if err := g.Restore(b); !errors.Is(err, ErrState) {
				t.Errorf("%s: restore %x: %v", c.name, b, err)
			}
		}
		var v *VersionError
		if err := g.Restore([]byte{2, 0, 0}); !errors.As(err, &v) || v.Have != 2 {
			t.Errorf("%s: restore another version: %v", c.name, err)
		}
	}
	g = settings(t, Custom("swing", newSwing)).New()
	if err := g.Restore([]byte{1, 0, 0, 'x'}); err == nil {
		t.Error("a custom generator's refusal is lost")
	}
}

func TestPunctuatedValues(t *testing.T) {
	var saw []error
	g := settings(t, Punctuated("errors", func(err error) (time.Time, bool) {
		saw = append(saw, err)
		return time.UnixMilli(7), err == nil
	})).New()
	g.Observe(&Record{Value: ErrState})
	g.Observe(&Record{})
	if len(saw) != 2 || saw[0] != ErrState || saw[1] != nil || g.Watermark() != 7 {
		t.Errorf("saw %v, W %d", saw, g.Watermark())
	}
	defer func() {
		if got, want := recover(), "watermark: punctuated errors: value of type int where error is due"; got != want {
			t.Errorf("panic %v", got)
		}
	}()
	g.Observe(&Record{Value: 1})
}

func TestObserveAllocates(t *testing.T) {
	for _, c := range strategies {
		if c.name == "custom swing" {
			continue
		}
		g := settings(t, c.opt).New()
		r := randomRecord(rand.New(rand.NewPCG(3, 0)), 1)
		buf := make([]byte, 0, 64)
		if n := testing.AllocsPerRun(100, func() {
			r.Time++
			g.Observe(&r)
			buf = g.Append(buf[:0])
		}); n != 0 {
			t.Errorf("%s: %v allocations per record", c.name, n)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, c := range strategies {
		b.Run(c.name, func(b *testing.B) {
			g := settings(b, c.opt).New()
			r := randomRecord(rand.New(rand.NewPCG(3, 0)), 1)
			b.ReportAllocs()
			for b.Loop() {
				r.Time++
				r.Appended++
				g.Observe(&r)
			}
		})
	}
}
