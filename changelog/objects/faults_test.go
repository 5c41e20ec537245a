package objects_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// once returns a store whose nth operation has the fault.
func once(s objects.Store, n int64, f objects.Fault) objects.Store {
	return objects.WithFaults(s, nil, func(op objects.Op) objects.Fault {
		if op.N == n {
			return f
		}
		return objects.Fault{}
	})
}

var errFault = errors.New("fault")

func TestFaultErrors(t *testing.T) {
	ctx := t.Context()
	for _, done := range []bool{false, true} {
		mem := objects.NewMem()
		check(t, mem.Put(ctx, "old", objects.Bytes([]byte("v"))))
		fail := func() objects.Store { return once(mem, 1, objects.Fault{Err: errFault, Done: done}) }
		if err := fail().Put(ctx, "new", objects.Bytes([]byte("v"))); !errors.Is(err, errFault) {
			t.Errorf("put: %v", err)
		}
		if err := fail().Delete(ctx, "old"); !errors.Is(err, errFault) {
			t.Errorf("delete: %v", err)
		}
		shown := 0
		if err := fail().List(ctx, "", func(objects.Info) error { shown++; return nil }); !errors.Is(err, errFault) || (shown > 0) != done {
			t.Errorf("list: %d shown, %v", shown, err)
		}
		if _, err := fail().Get(ctx, "new", 0, -1); !errors.Is(err, errFault) {
			t.Errorf("get: %v", err)
		}
		_, errNew := read(ctx, mem, "new")
		_, errOld := read(ctx, mem, "old")
		if (errNew == nil) != done || (errOld == nil) == done {
			t.Errorf("done %v: new %v, old %v", done, errNew, errOld)
		}
	}
}

func TestFaultDamage(t *testing.T) {
	ctx := t.Context()
	mem := objects.NewMem()
	check(t, mem.Put(ctx, "k", objects.Bytes([]byte("content"))))
	for _, c := range []struct {
		fault objects.Fault
		want  string
		err   error
	}{
		{objects.Fault{Damage: objects.Cut(3)}, "con", nil},
		{objects.Fault{Damage: objects.Cut(99)}, "content", nil},
		{objects.Fault{Damage: objects.Flip(0)}, "#ontent", nil},
		{objects.Fault{Damage: objects.Flip(-1)}, "conten4", nil},
		{objects.Fault{Damage: objects.Cut(3), Reset: true}, "con", io.ErrUnexpectedEOF},
		{objects.Fault{Reset: true}, "content", io.ErrUnexpectedEOF},
	} {
		if got, err := read(ctx, once(mem, 1, c.fault), "k"); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q, %v; want %q, %v", got, err, c.want, c.err)
		}
	}
	if got, err := read(ctx, mem, "k"); err != nil || got != "content" {
		t.Errorf("the object itself changed: %q, %v", got, err)
	}
	check(t, once(mem, 1, objects.Fault{Damage: objects.Cut(2)}).Put(ctx, "torn", objects.Bytes([]byte("whole"))))
	if got, err := read(ctx, mem, "torn"); err != nil || got != "wh" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFaultPlan(t *testing.T) {
	ctx := t.Context()
	var ops []objects.Op
	s := objects.WithFaults(objects.NewMem(), nil, func(op objects.Op) objects.Fault {
		ops = append(ops, op)
		if op.Kind == objects.OpList {
			return objects.Fault{Hide: func(key string) bool { return key == "b" }}
		}
		return objects.Fault{}
	})
	for _, key := range []string{"a", "b", "c"} {
		check(t, s.Put(ctx, key, objects.Bytes(nil)))
	}
	var keys []string
	check(t, s.List(ctx, "", func(i objects.Info) error { keys = append(keys, i.Key); return nil }))
	if !slices.Equal(keys, []string{"a", "c"}) {
		t.Errorf("a stale listing shows %q", keys)
	}
	check(t, s.Delete(ctx, "c", "a"))
	want := []objects.Op{{Kind: objects.OpPut, Key: "a", N: 1}, {Kind: objects.OpPut, Key: "b", N: 2}, {Kind: objects.OpPut, Key: "c", N: 3}, {Kind: objects.OpList, N: 4}, {Kind: objects.OpDelete, Key: "c", N: 5}}
	if !slices.Equal(ops, want) {
		t.Errorf("%+v", ops)
	}
	if got := ops[4].Kind.String() + " " + objects.Kind(0).String(); got != "delete unknown" {
		t.Error(got)
	}
}

func TestFaultDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := objects.WithFaults(objects.NewMem(), nil, func(objects.Op) objects.Fault { return objects.Fault{Delay: 2 * time.Second} })
		start := time.Now()
		check(t, s.Put(t.Context(), "k", objects.Bytes(nil)))
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Put(ctx, "late", objects.Bytes(nil)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
