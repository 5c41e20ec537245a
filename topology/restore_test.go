package topology_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

// An operator that changes key, time, headers or value for what follows changes nothing for its siblings.
func TestSiblingsSeeTheRecordUnchanged(t *testing.T) {
	note := func(c *topology.Context) { c.AddHeader("note", nil) }
	for name, declare := range map[string]func(*topology.Stream[string, string]){
		"filter": func(s *topology.Stream[string, string]) {
			s.TryFilter(func(c *topology.Context, _, _ string) (bool, error) { note(c); return true, nil }).To("x")
		},
		"map": func(s *topology.Stream[string, string]) {
			s.TryMap(func(c *topology.Context, _, v string) (string, error) { note(c); return v + "!", nil }).To("x")
		},
		"peek": func(s *topology.Stream[string, string]) {
			s.TryPeek(func(c *topology.Context, _, _ string) error { note(c); return nil }).To("x")
		},
		"flat-map": func(s *topology.Stream[string, string]) {
			s.TryFlatMap(func(c *topology.Context, _, v string, emit func(string) error) error { note(c); return emit(v + "!") }).To("x")
		},
		"split": func(s *topology.Stream[string, string]) {
			s.Split().TryWhen("w", func(c *topology.Context, _, _ string) (bool, error) { note(c); return true, nil },
				func(s *topology.Stream[string, string]) { s.To("x") }).Drop()
		},
		"key-by": func(s *topology.Stream[string, string]) {
			s.TryKeyBy("k", func(c *topology.Context, _, v string) (string, error) { note(c); return v, nil }).To("x")
		},
		"cut": func(s *topology.Stream[string, string]) {
			s.TryKeyBy("k", func(c *topology.Context, _, v string) (string, error) { note(c); return v, nil }).Count("m")
		},
		"aggregate": func(s *topology.Stream[string, string]) { s.Count("m", topology.EveryUpdate()).To("x") },
		"process": func(s *topology.Stream[string, string]) {
			s.Process("p", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
				r.AddHeader("note", nil)
				out.EmitAt(99, r.Value, r.Key)
				return nil
			}).To("x")
		},
	} {
		top := topology.New("t")
		s := top.Stream[string, string]("in")
		declare(s)
		s.TryMap(func(c *topology.Context, k, v string) (string, error) {
			return fmt.Sprint(k, v, c.Timestamp(), string(c.KeyBytes()), len(c.Headers())), nil
		}).To("seen")
		s.To("out")
		d := start(t, top)
		// The second record is older: a result's time must not stick to it.
		d.feeds(t, "in", rec(9, "k", "v", processor.Header{Key: "h"}), rec(3, "k", "v", processor.Header{Key: "h"}))
		var got []string
		for _, o := range d.out {
			if o.topic == "out" || o.topic == "seen" {
				got = append(got, o.String())
			}
		}
		want := "[seen@9 k=kv9k1 h:null out@9 k=v h:null seen@3 k=kv3k1 h:null out@3 k=v h:null]"
		if fmt.Sprint(got) != want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, got, want)
		}
	}
}

// A key that a user function keeps stays what it was, also when its row has left memory.
func TestKeptKeysOfAFlushStay(t *testing.T) {
	var kept [][]byte // a decoded []byte shares memory with its encoding
	top := topology.New("t")
	top.Stream[[]byte, string]("in").Count("n").Changes(func(c topology.Change[[]byte, int64]) (int64, bool) {
		kept = append(kept, c.Key)
		return 0, false
	}).To("out")
	s := build(t, top).Subs[0]
	state, err := store.Open(store.NewMem(), s.Stores, store.Options{ViewBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.NewTask(processor.Env{State: state, Output: new(discard)})
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	for i := range n {
		if err := task.Process(0, &processor.Record{Key: fmt.Appendf(nil, "key-%04d", i), Value: []byte{}}); err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 {
			err := errors.Join(task.Flush(), state.Seal(func(store.Change) error { return nil }), state.Commit(nil, 0))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(kept) != n {
		t.Fatalf("%d keys", len(kept))
	}
	for i, k := range kept {
		if want := fmt.Sprintf("key-%04d", i); string(k) != want {
			t.Fatalf("key %d is now %q", i, k)
		}
	}
}
