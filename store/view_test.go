package store

import (
	"errors"
	"fmt"
	"testing"
)

// A-EVICT-REENTRANT: loading rows of one view never takes the row that another view has returned last.
func TestAEvictReentrant(t *testing.T) {
	s, err := Open(NewMem(), []Spec{{ID: "a"}, {ID: "b"}}, Options{ViewBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	a, b := viewOf[int64](t, s, "a"), viewOf[int64](t, s, "b")
	for n := range 50 {
		put(t, a, fmt.Sprint(n), int64(n))
	}
	commitAll(t, s, "P")
	for n := range 50 {
		r, err := a.Row(fmt.Append(nil, n))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 { // far more than the budget holds
			if _, err := b.Row(fmt.Append(nil, n, i)); err != nil {
				t.Fatal(err)
			}
		}
		if !r.Present || r.Value != int64(n) {
			t.Fatalf("row %d is now %d %v", n, r.Value, r.Present)
		}
		a.Set(r, r.Value+100, 1)
	}
	commitAll(t, s, "Q")
	for n := range 50 {
		wantValue(t, a, fmt.Sprint(n), int64(n+100), true)
	}
	for n := range 200 { // rows the commit has made clean leave with the next loads
		if _, err := b.Row(fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	if m := s.Memory(); m.Clean > 1200 {
		t.Errorf("%d clean bytes, budget 1000", m.Clean)
	}
}

func TestStaleRow(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a"})
	v := viewOf[int64](t, s, "a")
	r, err := v.Row([]byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Row([]byte("b")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a write to a stale row was accepted")
		}
	}()
	v.Set(r, 1, 1)
}

// Rows that changed while Drain runs belong to the next Drain; none is lost by a seal in between.
func TestDrainReentrant(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a"})
	v := viewOf[int64](t, s, "a")
	v.EnableOld()
	put(t, v, "x", 1)
	put(t, v, "y", 1)
	var got []string
	drain := func() {
		t.Helper()
		err := v.Drain(func(key []byte, old int64, hadOld bool, r *Row[int64]) error {
			got = append(got, fmt.Sprintf("%s:%d:%v:%d", key, old, hadOld, r.Value))
			if r.Value == 1 {
				v.Set(r, 5, 1)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	drain()
	put(t, v, "x", 6)
	drain()
	drain()
	if want := "[x:0:false:1 y:0:false:1 x:1:true:6 y:1:true:5]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
	if err := v.Drain(func([]byte, int64, bool, *Row[int64]) error { return errTest }); err != nil {
		t.Errorf("nothing to drain: %v", err)
	}
	put(t, v, "x", 7)
	if err := v.Drain(func([]byte, int64, bool, *Row[int64]) error { return errTest }); !errors.Is(err, errTest) {
		t.Errorf("error of fn: %v", err)
	}
}

// Long keys lie in an arena, which does not grow with the keys that have gone.
func TestLongKeys(t *testing.T) {
	s, err := Open(NewMem(), []Spec{{ID: "a"}}, Options{ViewBytes: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	v := viewOf[int64](t, s, "a")
	key := func(n int) string { return fmt.Sprintf("%01000d", n) }
	for n := range 2000 {
		put(t, v, key(n), int64(n))
		if n%10 == 9 {
			if err := errors.Join(s.Seal(nil), s.Commit(nil, 0), s.Persist(0, n%100 == 99)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 2000 {
		wantValue(t, v, key(n), int64(n), true)
	}
	if len(v.keys.chunks) > 12 {
		t.Errorf("%d chunks of %d bytes for %d rows", len(v.keys.chunks), arenaChunk, v.table.n)
	}
}

// A scan merges all places a row can be in, newest first.
func TestScanSources(t *testing.T) {
	s, err := Open(NewMem(), []Spec{{ID: "a"}, {ID: "b"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, other := viewOf[string](t, s, "a"), viewOf[string](t, s, "b")
	write := func(where string, keys ...string) {
		for _, k := range keys {
			put(t, v, k, where)
		}
		put(t, other, "a", where)
	}
	write("db", "a", "b", "c", "d", "e", "f")
	commitAll(t, s, "P")
	write("frozen", "b", "c", "d", "e", "f")
	if err := errors.Join(s.Seal(nil), s.Commit(nil, 0)); err != nil || s.Freeze(0, true) == nil {
		t.Fatal(err)
	}
	write("layer", "c", "d", "e", "f")
	if err := errors.Join(s.Seal(nil), s.Commit(nil, 0)); err != nil {
		t.Fatal(err)
	}
	write("sealed", "d", "e", "f")
	if err := s.Seal(nil); err != nil {
		t.Fatal(err)
	}
	write("cur", "e", "f", "g")
	if err := v.Delete([]byte("f"), 1); err != nil {
		t.Fatal(err)
	}
	c, err := v.Scan(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for c.Next() {
		val, err := c.Value()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(c.Key())+"="+val)
	}
	if want := "[a=db b=frozen c=layer d=sealed e=cur g=cur]"; fmt.Sprint(got) != want || c.Close() != nil {
		t.Errorf("%v, want %v", got, want)
	}
}
