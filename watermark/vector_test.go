package watermark

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// news makes a control record of one entry.
func news(writer, tasks, task uint32, state State, w int64, seq uint64) *Control {
	return &Control{Kind: KindWatermark, Writer: writer, Tasks: tasks, Entries: []Entry{{task, state, w, seq}}}
}

func apply(t *testing.T, v *Vector, c *Control) {
	t.Helper()
	if err := v.Apply(c); err != nil {
		t.Fatal(err)
	}
}

func TestVector(t *testing.T) {
	type step struct {
		c      *Control
		w      int64
		idle   bool
		holder Holder
		held   bool
	}
	older := news(1, 2, 0, Active, 99, 90)
	older.Generation = 4
	newer := news(1, 2, 0, Active, 35, 1)
	newer.Generation = 5
	for name, steps := range map[string][]step{
		"unknown until every task and writer has reported": {
			{news(1, 2, 0, Active, 50, 1), Unknown, false, Holder{1, 1, Unknown, false}, true},
			{news(1, 2, 1, Active, 30, 1), Unknown, false, Holder{2, 0, Unknown, false}, true},
			{news(2, 1, 0, Active, 40, 1), 30, false, Holder{1, 1, 30, true}, true},
			{news(1, 2, 1, Active, 60, 2), 40, false, Holder{2, 0, 40, true}, true},
		},
		"idle ones are left out, and hold again": {
			{news(2, 1, 0, Idle, Unknown, 1), Unknown, false, Holder{1, 0, Unknown, false}, true},
			{news(1, 2, 0, Active, 50, 1), Unknown, false, Holder{1, 1, Unknown, false}, true},
			{news(1, 2, 1, Idle, 30, 1), 50, false, Holder{1, 0, 50, true}, true},
			{news(1, 2, 1, Active, 30, 2), 50, false, Holder{1, 1, 30, true}, true},
			{news(1, 2, 0, Active, 70, 2), 50, false, Holder{1, 1, 30, true}, true},
			{news(1, 2, 1, Active, 60, 3), 60, false, Holder{1, 1, 60, true}, true},
		},
		"all idle: W stays": {
			{news(2, 1, 0, Idle, 10, 1), Unknown, false, Holder{1, 0, Unknown, false}, true},
			{news(1, 1, 0, Active, 50, 1), 50, false, Holder{1, 0, 50, true}, true},
			{news(1, 1, 0, Idle, 90, 2), 50, true, Holder{}, false},
			{news(2, 1, 0, Active, 95, 2), 95, false, Holder{2, 0, 95, true}, true},
		},
		"done is finished": {
			{news(2, 1, 0, Done, 10, 1), Unknown, false, Holder{1, 0, Unknown, false}, true},
			{news(1, 1, 0, Active, 50, 1), 50, false, Holder{1, 0, 50, true}, true},
			{news(1, 1, 0, Idle, 50, 2), 50, true, Holder{}, false},
			{news(1, 1, 0, Done, 50, 3), Finished, false, Holder{}, false},
		},
		"growth holds W until the new tasks report": {
			{news(2, 1, 0, Done, 10, 1), Unknown, false, Holder{1, 0, Unknown, false}, true},
			{news(1, 1, 0, Active, 50, 1), 50, false, Holder{1, 0, 50, true}, true},
			{news(1, 3, 0, Active, 80, 2), 50, false, Holder{1, 1, Unknown, false}, true},
			{news(1, 1, 0, Active, 90, 3), 50, false, Holder{1, 1, Unknown, false}, true}, // a writer that knows less
			{news(1, 3, 1, Idle, 0, 1), 50, false, Holder{1, 2, Unknown, false}, true},
			{news(1, 3, 2, Active, 20, 1), 50, false, Holder{1, 2, 20, true}, true},
			{news(1, 3, 2, Active, 85, 2), 85, false, Holder{1, 2, 85, true}, true},
		},
		"growth of idle ones": {
			{news(2, 1, 0, Idle, 10, 1), Unknown, false, Holder{1, 0, Unknown, false}, true},
			{news(1, 1, 0, Idle, 50, 1), Unknown, true, Holder{}, false},
			{news(1, 2, 0, Idle, 50, 2), Unknown, false, Holder{1, 1, Unknown, false}, true},
		},
		"what is older is ignored": {
			{news(2, 1, 0, Idle, 10, 1), Unknown, false, Holder{1, 0, Unknown, false}, true},
			{news(1, 2, 1, Idle, 10, 1), Unknown, false, Holder{1, 0, Unknown, false}, true},
			{news(1, 2, 0, Active, 40, 5), 40, false, Holder{1, 0, 40, true}, true},
			{news(1, 2, 0, Idle, 99, 4), 40, false, Holder{1, 0, 40, true}, true},
			{newer, 40, false, Holder{1, 0, 40, true}, true}, // of a newer generation, but W is the highest told
			{older, 40, false, Holder{1, 0, 40, true}, true},
			{news(1, 2, 0, Active, 99, 90), 40, false, Holder{1, 0, 40, true}, true},
		},
	} {
		v := NewVector(1, 2)
		for n, s := range steps {
			apply(t, v, s.c)
			w, idle := v.Watermark()
			h, held := v.Holder()
			if w != s.w || idle != s.idle || h != s.holder || held != s.held {
				t.Errorf("%s, step %d: %d, %v, held by %+v, %v, want %+v", name, n, w, idle, h, held, s)
			}
		}
	}
}

// WM-NO-PARTITION: two partitions over three instances. The one without a task
// announces nothing, and nobody waits for it.
func TestWMNoPartition(t *testing.T) {
	v := NewVector(WriterID("by-user"))
	apply(t, v, news(WriterID("by-user"), 2, 0, Active, 30, 1))
	apply(t, v, news(WriterID("by-user"), 2, 1, Active, 50, 1))
	apply(t, v, &Control{Kind: KindWatermark, Writer: WriterID("by-user"), Tasks: 2})
	if w, idle := v.Watermark(); w != 30 || idle {
		t.Errorf("%d, %v", w, idle)
	}
	if w, idle := NewVector().Watermark(); w != Unknown || !idle {
		t.Errorf("without writers: %d, %v", w, idle)
	}
}

// WM-ALL-IDLE, through a repartition topic.
func TestWMAllIdleVector(t *testing.T) {
	for first := range uint32(2) {
		v := NewVector(1)
		for task, w := range []int64{71, 64} {
			apply(t, v, news(1, 2, uint32(task), Active, w, 1))
		}
		for n, task := range []uint32{first, 1 - first} {
			apply(t, v, news(1, 2, task, Idle, []int64{71, 64}[task], 2+uint64(n)))
		}
		w, idle := v.Watermark()
		if want := []int64{64, 71}[first]; w != want || !idle {
			t.Errorf("%d first: %d, %v, want %d", first, w, idle, want)
		}
		if w, idle = Combine(w, []Input{{W: v.Max(), Idle: true}}, AdvanceToMax, 0, 0); w != 71 || !idle {
			t.Errorf("%d first: %d at the maximum", first, w)
		}
	}
}

func TestVectorRefuses(t *testing.T) {
	v := NewVector(1)
	apply(t, v, news(1, 1, 0, Active, 5, 1))
	before := v.Append(nil)
	if err := v.Apply(news(2, 1, 0, Active, 9, 1)); !errors.Is(err, ErrWriter) {
		t.Errorf("unknown writer: %v", err)
	}
	bad := news(1, 2, 0, Active, 9, 2)
	bad.Entries = append(bad.Entries, Entry{Task: 2})
	if err := v.Apply(bad); !errors.Is(err, ErrControl) {
		t.Errorf("task beyond the number: %v", err)
	}
	if !bytes.Equal(before, v.Append(nil)) {
		t.Error("changed by what it refused")
	}
}

// naiveVector remembers all records and derives W from scratch.
type naiveVector struct {
	writers []uint32
	heard   []Control
	w       int64
}

func (v *naiveVector) apply(c *Control) (w int64, idle bool) {
	v.heard = append(v.heard, *c)
	type key struct{ writer, task uint32 }
	expected := map[uint32]uint32{}
	newest := map[key]Entry{}
	generation := map[key]uint64{}
	for _, c := range v.heard {
		expected[c.Writer] = max(expected[c.Writer], c.Tasks)
		for _, e := range c.Entries {
			k := key{c.Writer, e.Task}
			if old, ok := newest[k]; ok {
				if g := generation[k]; c.Generation < g || c.Generation == g && e.Seq < old.Seq {
					continue
				}
				e.W = max(e.W, old.W)
			}
			newest[k], generation[k] = e, c.Generation
		}
	}
	least, active, idles := int64(Finished), 0, 0
	for _, id := range v.writers {
		if expected[id] == 0 {
			return v.w, false
		}
		for task := range expected[id] {
			e, ok := newest[key{id, task}]
			switch {
			case !ok:
				return v.w, false
			case e.State == Active:
				least = min(least, e.W)
				active++
			case e.State == Idle:
				idles++
			}
		}
	}
	if active == 0 && idles > 0 {
		return v.w, true
	}
	v.w = max(v.w, least)
	return v.w, false
}

// Whatever arrives in whatever order: the vector agrees with its definition,
// also when restored or copied in between, W never falls, and it rises only to
// what every task that is not idle has announced.
func TestVectorTwin(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	idles, rises := 0, 0
	for round := range 400 {
		writers := []uint32{7, 8, 9}[:1+rng.IntN(3)]
		tasks := []uint32{1 + rng.Uint32N(3), 1 + rng.Uint32N(3), 1 + rng.Uint32N(3)}
		v, naive := NewVector(writers...), naiveVector{writers: writers, w: Unknown}
		last := int64(Unknown)
		for n := range 120 {
			i := rng.IntN(len(writers))
			if rng.IntN(60) == 0 {
				tasks[i]++
			}
			c := &Control{Kind: KindWatermark, Writer: writers[i], Generation: uint64(n/50) + rng.Uint64N(2), Tasks: tasks[i] - min(tasks[i]-1, rng.Uint32N(5)/4)}
			for range rng.IntN(3) {
				e := Entry{Task: rng.Uint32N(c.Tasks), W: int64(n) + rng.Int64N(40), Seq: uint64(n/2) + rng.Uint64N(4)}
				switch rng.IntN(10) {
				case 0, 1, 2, 3:
					e.State = Idle
				case 4:
					e.State = Done
				case 5:
					e.W = edges[rng.IntN(5)]
				}
				c.Entries = append(c.Entries, e)
			}
			apply(t, v, c)
			w, idle := v.Watermark()
			if nw, ni := naive.apply(c); w != nw || idle != ni {
				t.Fatalf("seed %d, round %d, record %d: %d, %v, want %d, %v", seed, round, n, w, idle, nw, ni)
			}
			if w < last {
				t.Fatalf("seed %d, round %d, record %d: W falls from %d to %d", seed, round, n, last, w)
			}
			if w > last {
				rises++
				for writer, e := range v.Entries() {
					if e.State == Active && e.W < w {
						t.Fatalf("seed %d, round %d, record %d: W rises to %d beyond %08x/%d at %d", seed, round, n, w, writer, e.Task, e.W)
					}
				}
			}
			if idle {
				idles++
			}
			last = w
			if _, held := v.Holder(); held == (idle || w == Finished) && !(w == Finished && held) {
				t.Fatalf("seed %d, round %d, record %d: held %v, idle %v at %d", seed, round, n, held, idle, w)
			}
			switch rng.IntN(20) {
			case 0:
				state := v.Append([]byte("x"))
				v = NewVector(writers...)
				if err := v.Restore(state[1:]); err != nil || !bytes.Equal(v.Append([]byte("x")), state) {
					t.Fatalf("seed %d, round %d, record %d: restored from %x: %v", seed, round, n, state, err)
				}
			case 1:
				o := NewVector(1, 2, 3, 4)
				apply(t, o, news(2, 9, 8, Active, 1, 1))
				o.CopyFrom(v)
				state := o.Append(nil)
				for k := range v.writers { // the original goes another way
					apply(t, v, news(v.writers[k].id, 6, 5, Done, Finished, 1<<60))
				}
				if v = o; !bytes.Equal(v.Append(nil), state) {
					t.Fatalf("seed %d, round %d: the copy shares memory", seed, round)
				}
			}
		}
	}
	if idles < 100 || rises < 1000 {
		t.Errorf("seed %d: idle %d times, risen %d times: the test proves little", seed, idles, rises)
	}
}

func TestVectorState(t *testing.T) {
	v := NewVector(0x01020304, 5)
	c := news(0x01020304, 2, 0, Active, 1000, 7)
	c.Generation = 2
	c.Entries = append(c.Entries, Entry{1, Idle, 990, 9})
	apply(t, v, c)
	apply(t, v, news(5, 1, 0, Active, 1005, 1))
	apply(t, v, &Control{Kind: KindWatermark, Writer: 0x01020304, Tasks: 3})
	want := []byte{
		1, 0xd0, 0x0f, 2, // version, W 1000, two writers
		1, 2, 3, 4, 3, // the first, three tasks
		0, 0, 4, 14, // active at 1000, generation 2, seq 7
		1, 19, 0, 4, // idle, 10 less, the same generation, seq 9
		0xff,          // not heard of
		0, 0, 0, 5, 1, // the second writer
		0, 30, 3, 15, // active, 15 more than 990, two generations less, seq 8 less
	}
	if got := v.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("state %x, want %x", got, want)
	}

	// Writers come and go with the topology.
	state := v.Append(nil)
	o := NewVector(5, 6)
	if err := o.Restore(state); err != nil {
		t.Fatal(err)
	}
	w, _ := o.Watermark()
	h, _ := o.Holder()
	if w != 1000 || h.Writer != 6 || h.Heard {
		t.Errorf("%d, held by %+v", w, h)
	}
	apply(t, o, news(6, 1, 0, Active, 2000, 1))
	apply(t, o, news(5, 1, 0, Active, 1500, 2))
	if w, _ := o.Watermark(); w != 1500 {
		t.Errorf("%d", w)
	}

	for n := range state {
		if err := o.Restore(state[:n]); !errors.Is(err, ErrState) {
			t.Errorf("%d of %d bytes: %v", n, len(state), err)
		}
	}
	if err := o.Restore(append(bytes.Clone(state), 0)); !errors.Is(err, ErrState) {
		t.Errorf("a byte too many: %v", err)
	}
	bad := bytes.Clone(state)
	bad[0] = 2
	var ve *VersionError
	if err := o.Restore(bad); !errors.As(err, &ve) || ve.Have != 2 {
		t.Errorf("another version: %v", err)
	}
	if err := o.Restore([]byte{1, 0, 1, 0, 0, 0, 1, 1, 3, 0, 0, 0}); !errors.Is(err, ErrState) {
		t.Errorf("no such state: %v", err)
	}
	if w, _ := o.Watermark(); w != 1500 {
		t.Errorf("a refused state has changed W to %d", w)
	}
}

func TestVectorAllocates(t *testing.T) {
	v := NewVector(1, 2)
	apply(t, v, news(1, 64, 0, Active, 1, 1))
	c := news(1, 64, 3, Active, 1, 1)
	o := NewVector()
	o.CopyFrom(v)
	if n := testing.AllocsPerRun(100, func() {
		c.Entries[0].W++
		_ = v.Apply(c)
		o.CopyFrom(v)
		_, _ = v.Holder()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkVectorApply(b *testing.B) {
	v := NewVector(1)
	for task := range uint32(64) {
		_ = v.Apply(news(1, 64, task, Active, 1, 1))
	}
	c := &Control{Kind: KindWatermark, Writer: 1, Tasks: 64}
	for task := range uint32(8) {
		c.Entries = append(c.Entries, Entry{task, Active, 1_700_000_000_000, 1})
	}
	encoded := c.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		c, _ := ParseControl(encoded)
		_ = v.Apply(c)
	}
}
