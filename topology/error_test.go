package topology_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
)

// wantError checks that err is a processor.Error of this operator and stage whose text contains cause.
func wantError(tb testing.TB, err error, operator, stage, cause string) *processor.Error {
	tb.Helper()
	var e *processor.Error
	if !errors.As(err, &e) {
		tb.Fatalf("error %v, want a processor.Error", err)
	}
	if e.Operator != operator || e.Stage != stage || !strings.Contains(e.Error(), cause) {
		tb.Errorf("error %q: operator %q, stage %q; want %q, %q, %q", e, e.Operator, e.Stage, operator, stage, cause)
	}
	return e
}

// P-POISON: undecodable records are errors that name source and stage; good ones around them are processed.
func TestPPoison(t *testing.T) {
	top := topology.New("t")
	type ad struct{ N int }
	top.Stream[int64, ad]("in").TryMap(func(_ *topology.Context, k int64, a ad) (int64, error) {
		return k + int64(a.N), nil
	}).To("out")
	d := start(t, top)
	good := "\x00\x00\x00\x00\x00\x00\x00\x01"
	wantError(t, d.feed("in", rec(1, "bad", `{"N":1}`)), "source(in)", processor.StageDecodeKey, "")
	d.feeds(t, "in", rec(2, good, `{"N":1}`))
	e := wantError(t, d.feed("in", rec(3, good, `{`)), "source(in)", processor.StageDecodeValue, "")
	if string(e.Key) != good {
		t.Errorf("key %q", e.Key)
	}
	d.expect(t, "out@2 1=2")
	if n := d.tasks["in"].task.Effects(); n != 1 {
		t.Errorf("effects %d, want 1", n)
	}
}

// P-SINK-ENCODE: a value that cannot be encoded is an error with key and operator; what comes after it goes on.
func TestPSinkEncode(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").Map(func(v string) float64or { return float64or(v) }).
		To("out", topology.ValueCodec[float64or](picky{}))
	d := start(t, top)
	d.feeds(t, "in", rec(1, "a", "x"))
	e := wantError(t, d.feed("in", rec(2, "b", "bad")), "sink(out)", processor.StageEncode, "picky")
	if string(e.Key) != "b" {
		t.Errorf("key %q", e.Key)
	}
	d.feeds(t, "in", rec(3, "c", "z"))
	d.expect(t, "out@1 a=x", "out@3 c=z")
}

type float64or string

// picky is a codec that refuses "bad".
type picky struct{}

func (picky) Append(dst []byte, v float64or) ([]byte, error) {
	if v == "bad" {
		return nil, errors.New("picky: bad")
	}
	return append(dst, v...), nil
}
func (picky) Decode(b []byte) (float64or, error) { return float64or(b), nil }
func (picky) JSON(dst, b []byte) ([]byte, error) { return append(dst, b...), nil }
func (picky) Schema() string                     { return "picky" }

func TestPanicsBecomeErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name, operator string
		declare        func(*topology.Stream[string, string])
	}{
		{"filter", "filter#1", func(s *topology.Stream[string, string]) {
			s.Filter(func(string) bool { panic(boom) }).To("out")
		}},
		{"map after map", "map#2", func(s *topology.Stream[string, string]) {
			s.Map(strings.ToUpper).Map(func(string) string { panic(boom) }).To("out")
		}},
		{"key-by", "k", func(s *topology.Stream[string, string]) {
			s.KeyBy("k", func(string) string { panic(boom) }).Count("n")
		}},
		{"branch", "branch(b)", func(s *topology.Stream[string, string]) {
			s.Split().When("b", func(string) bool { panic(boom) }, func(*topology.Stream[string, string]) {}).Drop()
		}},
		{"aggregate", "r", func(s *topology.Stream[string, string]) {
			s.Aggregate("r", topology.Fold(func(string, string) string { panic(boom) }))
		}},
		{"flat-map after an emit", "flat-map#1", func(s *topology.Stream[string, string]) {
			s.FlatMap(func(_ string, emit func(string)) { emit("x"); panic(boom) }).Map(strings.ToUpper).To("out")
		}},
		{"processor after an emit", "p", func(s *topology.Stream[string, string]) {
			s.Process("p", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
				out.Emit("x", "y")
				panic(boom)
			}).Map(strings.ToUpper).To("out")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := topology.New("t")
			c.declare(top.Stream[string, string]("in"))
			d := start(t, top)
			err := d.feed("in", rec(1, "key", "v"))
			e := wantError(t, err, c.operator, processor.StageUser, "panic: boom")
			if !errors.Is(err, boom) || !strings.Contains(string(e.Stack), "error_test.go") || string(e.Key) != "key" {
				t.Errorf("cause, stack or key lost: %v %q\n%s", e, e.Key, e.Stack)
			}
		})
	}
}

func TestPanicDuringFlush(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").Count("n").Map(func(n int64) int64 { panic("late") }).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(1, "k", "v"))
	wantError(t, d.commit(), "map#1", processor.StageUser, "panic: late")
}

func TestNullKey(t *testing.T) {
	for _, c := range []struct {
		name, operator string
		declare        func(*topology.Topology)
	}{
		{"aggregate", "n", func(top *topology.Topology) { top.Stream[string, string]("in").Count("n") }},
		{"table", "source(in)", func(top *topology.Topology) { top.Table[string, string]("in", "table") }},
		{"processor with store", "p", func(top *topology.Topology) {
			top.Stream[string, string]("in").Process("p",
				func(topology.Emitter[string, string], topology.Record[string, string]) error { return nil },
				topology.KeyValue[string, string]("kv"))
		}},
		{"behind a cut", "n", func(top *topology.Topology) {
			top.Stream[string, string]("in").KeyBy("by", func(string) []byte { return nil }).Count("n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := topology.New("t")
			c.declare(top)
			d := start(t, top)
			err := d.feed("in", rec(1, "null", "v"))
			wantError(t, err, c.operator, processor.StageNullKey, "null")
			if !errors.Is(err, processor.ErrNull) {
				t.Error("not ErrNull")
			}
		})
	}
}

func TestNullValue(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("plain").To("out")
	top.Stream[string, []byte]("bytes").Map(func(v []byte) bool { return v == nil }).To("is-null")
	top.Stream[string, *int64]("pointer").Map(func(v *int64) bool { return v == nil }).To("is-nil")
	top.Stream[string, []byte]("pass").To("passed")
	d := start(t, top)
	wantError(t, d.feed("plain", rec(1, "k", "null")), "source(plain)", processor.StageNullValue, "null")
	d.feeds(t, "bytes", rec(1, "k", "null"), rec(2, "k", ""))
	d.feeds(t, "pointer", rec(1, "k", "null"))
	d.feeds(t, "pass", rec(1, "k", "null"))
	d.expect(t, "is-null@1 k=\x01", "is-null@2 k=\x00", "is-nil@1 k=\x01", "passed@1 k=null")
}

// Errors of the output are not errors of the record, whatever user code between makes of them.
func TestOutputErrorsComeBackAsTheyAre(t *testing.T) {
	down := errors.New("output is down")
	for name, declare := range map[string]func(*topology.Stream[string, string]){
		"sink":    func(s *topology.Stream[string, string]) { s.To("out") },
		"key-by":  func(s *topology.Stream[string, string]) { s.KeyBy("by", strings.ToUpper).Count("n") },
		"process": func(s *topology.Stream[string, string]) { s.Process("p", pass).To("out") },
		"panic": func(s *topology.Stream[string, string]) {
			s.TryFlatMap(func(_ *topology.Context, _, v string, emit func(string) error) error {
				panic(emit(v))
			}).To("out")
		},
		"reworded": func(s *topology.Stream[string, string]) {
			s.TryFlatMap(func(_ *topology.Context, _, v string, emit func(string) error) error {
				if emit(v) != nil {
					return errors.New("mine")
				}
				return nil
			}).To("out")
		},
	} {
		top := topology.New("t")
		declare(top.Stream[string, string]("in"))
		d := start(t, top)
		d.tasks["in"].fail = down
		if err := d.feed("in", rec(1, "k", "v")); err != down {
			t.Errorf("%s: error %v", name, err)
		}
		d.tasks["in"].fail = nil
		if err := d.feed("in", rec(1, "k", "v")); name != "panic" && err != nil {
			t.Errorf("%s: after the output is back: %v", name, err)
		}
	}
}

func pass(out topology.Emitter[string, string], r topology.Record[string, string]) error {
	out.Emit(r.Key, r.Value)
	return nil
}

// An output may refuse one record as such: that is the record's fault, has the sink's name, and left nothing behind.
func TestOutputRefusesARecord(t *testing.T) {
	top := topology.New("t")
	top.Stream[string, string]("in").To("out")
	d := start(t, top)
	refusal := &processor.Error{Stage: "oversize", Err: errors.New("too big")}
	d.tasks["in"].fail = refusal
	e := wantError(t, d.feed("in", rec(1, "k", "v")), "sink(out)", "oversize", "too big")
	if string(e.Key) != "k" || refusal.Operator != "" || d.tasks["in"].task.Effects() != 0 {
		t.Errorf("key %q, refusal %v, effects %d", e.Key, refusal, d.tasks["in"].task.Effects())
	}
}

func TestEffectsShowWhatAFailedRecordLeftBehind(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	s.Aggregate("into", topology.FoldInto(func(n *int64, v string) {
		if v == "in fold" {
			panic(v)
		}
		*n++
	}))
	s.TryPeek(func(_ *topology.Context, _, v string) error {
		if v == "after" {
			return errors.New(v)
		}
		return nil
	})
	top.Stream[string, string]("clean").TryMap(func(_ *topology.Context, _, _ string) (string, error) {
		return "", errors.New("no")
	}).To("out")
	d := start(t, top)
	effects := func(sub string) uint64 { return d.tasks[sub].task.Effects() }
	for _, v := range []string{"in fold", "after"} {
		before := effects("into")
		if err := d.feed("in", rec(1, "k", v)); err == nil || effects("into") == before {
			t.Errorf("%s: error %v, effects %d then %d", v, err, before, effects("into"))
		}
	}
	if err := d.feed("clean", rec(1, "k", "v")); err == nil || effects("clean") != 0 {
		t.Errorf("error %v, effects %d", err, effects("clean"))
	}
}
