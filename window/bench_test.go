package window

import (
	"testing"
	"time"
)

func BenchmarkAssign(b *testing.B) {
	for _, c := range []struct {
		name string
		w    Window
	}{
		{"tumbling", Tumbling(time.Minute)},
		{"tumbling-offset", Tumbling(time.Minute).Offset(time.Second)},
		{"hopping-5", Hopping(5*time.Minute, time.Minute)},
		{"cumulate-60", Cumulate(time.Minute, time.Hour)},
		{"session", Session(time.Minute)},
		{"day", Day(location(b, "Europe/Berlin"))},
		{"month", Month(location(b, "Europe/Berlin"))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []Bounds
			ts := int64(1_700_000_000_000)
			for b.Loop() {
				dst = c.w.Assign(dst[:0], ts)
				ts += 1234
			}
		})
	}
}

func BenchmarkSlice(b *testing.B) {
	w := Hopping(5*time.Minute, time.Minute)
	ts := int64(1_700_000_000_000)
	for b.Loop() {
		w.Slice(ts)
		ts += 1234
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, c := range []struct {
		name string
		opts []Option
		w    int64
	}{
		{"on-time", nil, 0},
		{"early-every", []Option{Early(Every(10 * time.Second)), AllowedLateness(time.Minute)}, 0},
		{"early-count", []Option{Early(AfterCount(100))}, 0},
		{"late", []Option{AllowedLateness(time.Hour)}, 60_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg, err := New(Tumbling(time.Minute), c.opts...)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var s State
			bounds, hash := Bounds{0, 60_000}, uint64(0)
			for b.Loop() {
				if d := cfg.Add(&s, bounds, c.w, 5); d.Fire {
					hash++
					cfg.Fire(&s, bounds, d, c.w, hash)
				}
			}
		})
	}
}

func BenchmarkState(b *testing.B) {
	s := State{Flags: Emitted | Past, Panes: 3, NonSpeculative: 2, Hash: 12345}
	buf := s.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		buf = s.Append(buf[:0])
		if _, _, err := ParseState(buf); err != nil {
			b.Fatal(err)
		}
	}
}
