package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/internal/invariants"
)

var errTest = errors.New("test")

// After an error in the middle of Seal everything uncommitted of all views goes, and what is committed stays.
func TestSealError(t *testing.T) {
	for _, failAt := range []int{0, 1, 2, 3, 4} {
		s := openWith(t, NewMem(), Spec{ID: "a", Changelog: true}, Spec{ID: "b", Changelog: true}, Spec{ID: "c", Changelog: true})
		a, b, c := viewOf[int64](t, s, "a"), viewOf[string](t, s, "b"), viewOf[int64](t, s, "c")
		put(t, a, "k", 1)
		put(t, b, "k", "1")
		put(t, c, "k", 1)
		if err := errors.Join(s.Seal(nil), s.Commit(nil, 0)); err != nil {
			t.Fatal(err)
		}
		put(t, a, "k", 2)
		put(t, a, "new", 2)
		put(t, b, "k", "2")
		put(t, b, "new", "2")
		put(t, c, "k", 2)
		n := 0
		err := s.Seal(func(Change) error {
			if n++; n == failAt+1 {
				return errTest
			}
			return nil
		})
		if !errors.Is(err, errTest) {
			t.Fatal(err)
		}
		if err := s.Commit(nil, 0); err == nil {
			t.Error("a half-sealed generation was committed")
		}
		s.Rollback()
		wantValue(t, a, "k", 1, true)
		wantValue(t, a, "new", 0, false)
		wantValue(t, b, "k", "1", true)
		wantValue(t, b, "new", "", false)
		wantValue(t, c, "k", 1, true)
		if d := s.Dirty(); d != 0 {
			t.Errorf("%d dirty bytes left", d)
		}
		put(t, c, "k", 3)
		commitAll(t, s, "P")
		wantValue(t, c, "k", 3, true)
		wantValue(t, b, "k", "1", true)
	}
}

// failing is a codec that cannot encode negative numbers.
type failing struct{ codec.Codec[int64] }

func (f failing) Append(dst []byte, v int64) ([]byte, error) {
	if v < 0 {
		return nil, errTest
	}
	return f.Codec.Append(dst, v)
}

func TestEncodeError(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a"})
	v, err := ViewOf[int64](s, "a", failing{codec.Int64()})
	if err != nil {
		t.Fatal(err)
	}
	put(t, v, "good", 1)
	put(t, v, "bad", -1)
	if err := s.Seal(nil); !errors.Is(err, errTest) {
		t.Errorf("seal: %v", err)
	}
	s.Rollback()
	wantValue(t, v, "good", 0, false)
}

func TestOrderOfCalls(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a"})
	if err := s.Commit(nil, 0); err == nil {
		t.Error("commit before seal")
	}
	if err := s.Seal(nil); err != nil {
		t.Error(err)
	}
	if err := s.Seal(nil); err == nil {
		t.Error("seal after seal")
	}
	if err := s.Commit(nil, 0); err != nil {
		t.Error(err)
	}
	if err := s.Finish(); err == nil {
		t.Error("finish before freeze")
	}
	if s.Freeze(0, false) != nil {
		t.Error("freeze without need")
	}
	f := s.Freeze(0, true)
	if err := s.Finish(); err == nil || f == nil {
		t.Error("finish before write")
	}
	if err := s.Persist(0, true); err == nil {
		t.Error("persist during a write")
	}
	if s.Freeze(0, true) != nil {
		t.Error("second freeze")
	}
	if err := errors.Join(f.Write(), s.Finish(), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestViewOfRefuses(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a"})
	v := viewOf[int64](t, s, "a")
	if again := viewOf[int64](t, s, "a"); again != v {
		t.Error("another view on the second call")
	}
	if _, err := ViewOf(s, "a", codec.String()); err == nil {
		t.Error("a view of another type")
	}
	if _, err := ViewOf(s, "b", codec.String()); err == nil {
		t.Error("a view of an unknown store")
	}
}

// A value that stands for null is a delete.
func TestSetNull(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a", Changelog: true})
	v := viewOf[[]byte](t, s, "a")
	put(t, v, "k", []byte("x"))
	put(t, v, "empty", []byte{})
	put(t, v, "null", nil)
	put(t, v, "k", nil)
	var got []string
	err := s.Seal(func(c Change) error {
		got = append(got, fmt.Sprintf("%s:%q:%v", c.Key, c.Value, c.Value == nil))
		return nil
	})
	if want := `[k:"":true empty:"":false null:"":true]`; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if val, ok, _ := v.Get([]byte("empty")); !ok || val == nil || len(val) > 0 {
		t.Errorf("empty value: %v %v", val, ok)
	}
}

// Values of an aliasing codec do not keep the memory of the user's value after the seal.
func TestSealLetsGoOfBatches(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a", Changelog: true})
	v := viewOf[[]byte](t, s, "a")
	batch := []byte("----value----")
	put(t, v, "k", batch[4:9])
	var change []byte
	if err := s.Seal(func(c Change) error { change = c.Value; return nil }); err != nil {
		t.Fatal(err)
	}
	copy(batch, bytes.Repeat([]byte{'#'}, len(batch)))
	val, _, _ := v.Get([]byte("k"))
	if string(val) != "value" || string(change) != "value" {
		t.Errorf("value %q, change %q after the batch was used again", val, change)
	}
	if &val[0] == &change[0] {
		t.Error("the value keeps the slab alive")
	}
}

// Changes stay as they are whatever happens to the state afterwards.
func TestChangesAreImmutable(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a", Changelog: true})
	v := viewOf[string](t, s, "a")
	var changes []Change
	emit := func(c Change) error { changes = append(changes, c); return nil }
	for n := range 2000 {
		put(t, v, fmt.Sprintf("k%04d", n), fmt.Sprintf("v%04d", n))
		if n%10 != 9 {
			continue
		}
		if err := s.Seal(emit); err != nil {
			t.Fatal(err)
		}
		if n%20 == 9 {
			s.Rollback()
		} else if err := errors.Join(s.Commit(nil, 0), s.Persist(0, n%3 == 0)); err != nil {
			t.Fatal(err)
		}
	}
	for n, c := range changes {
		if string(c.Key) != fmt.Sprintf("k%04d", n) || string(c.Value) != fmt.Sprintf("v%04d", n) {
			t.Fatalf("change %d is %q %q", n, c.Key, c.Value)
		}
		if cap(c.Key) != len(c.Key) || cap(c.Value) != len(c.Value) {
			t.Fatalf("change %d: appending to it would overwrite another", n)
		}
	}
}

// A value that was changed in place is found when its row leaves the view.
func TestChangedInPlace(t *testing.T) {
	if !invariants.Enabled {
		return
	}
	s, err := Open(NewMem(), []Spec{{ID: "a"}}, Options{ViewBytes: 500})
	if err != nil {
		t.Fatal(err)
	}
	v := viewOf[[]int](t, s, "a")
	put(t, v, "k", []int{1})
	commitAll(t, s, "P")
	val, _, _ := v.Get([]byte("k"))
	val[0] = 2
	defer func() {
		if recover() == nil {
			t.Error("nobody noticed")
		}
	}()
	for n := range 100 {
		if _, _, err := v.Get(fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// The hot path allocates nothing per row.
func TestAllocations(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "a", Changelog: true})
	v := viewOf[int64](t, s, "a")
	const rows = 1000
	keys := make([][]byte, rows)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%012d", i)
	}
	round := func() {
		for _, k := range keys {
			r, _ := v.Row(k)
			v.Set(r, r.Value+1, 1)
		}
		if err := errors.Join(s.Seal(func(Change) error { return nil }), s.Commit(nil, 0)); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n > 20 && !invariants.Enabled {
		t.Errorf("%v allocations for %d rows", n, rows)
	}
}
