package processor

import (
	"errors"
	"strings"
	"testing"
)

func TestTaskID(t *testing.T) {
	if s := (TaskID{"sub", 3}).String(); s != "sub/3" {
		t.Error(s)
	}
}

func TestError(t *testing.T) {
	cause := errors.New("cause")
	e := &Error{Operator: "op", Stage: StageUser, Err: cause}
	if e.Error() != "processor: op: user: cause" || !errors.Is(e, cause) {
		t.Error(e)
	}
}

func TestErrorsCopyTheKey(t *testing.T) {
	b := NewBuilder(Env{})
	op := b.Op("op")
	key := []byte("key")
	b.Source(func(c *Context) error { return c.fail(op, StageUser, errors.New("no")) }, nil)
	err := b.Task().Process(0, &Record{Key: key})
	key[0] = 'x'
	var e *Error
	if !errors.As(err, &e) || string(e.Key) != "key" {
		t.Errorf("%v", err)
	}
	err = b.Task().Process(0, &Record{Key: []byte{}})
	if !errors.As(err, &e) || e.Key == nil {
		t.Error("an empty key became null")
	}
}

func TestPanicInAnyForm(t *testing.T) {
	for _, p := range []any{"text", errors.New("error"), 7} {
		b := NewBuilder(Env{})
		b.Op("op")
		b.Source(func(c *Context) error { panic(p) }, nil)
		task := b.Task()
		err := task.Process(0, &Record{})
		var e *Error
		if !errors.As(err, &e) || e.Stage != StageUser || e.Operator != "op" || len(e.Stack) == 0 {
			t.Errorf("%v: %v", p, err)
		}
	}
}

func TestHeadersOfTheInputAreNotTouched(t *testing.T) {
	headers := make([]Header, 1, 4) // with room behind, which is the caller's
	headers[0].Key = "a"
	b := NewBuilder(Env{})
	b.Op("op")
	b.Source(func(c *Context) error {
		c.AddHeader("b", nil)
		if len(c.Headers()) != 2 {
			t.Error(c.Headers())
		}
		return nil
	}, nil)
	if err := b.Task().Process(0, &Record{Headers: headers}); err != nil {
		t.Fatal(err)
	}
	if headers[:2][1].Key != "" {
		t.Error("the caller's slice was written to")
	}
}

func TestCloseJoinsErrorsAndPanics(t *testing.T) {
	b := NewBuilder(Env{})
	closed := 0
	b.OnClose(func() error { closed++; return errors.New("first") })
	b.OnClose(func() error { closed++; panic("second") })
	b.OnClose(func() error { closed++; return nil })
	task := b.Task()
	err := task.Close()
	if closed != 3 || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "panic: second") {
		t.Error(closed, err)
	}
	if err := task.Close(); err != nil || closed != 3 {
		t.Error("closed twice")
	}
}

func TestFlushRunsInOrderAndStopsAtAnError(t *testing.T) {
	b := NewBuilder(Env{Task: TaskID{"s", 4}})
	b.Op("op")
	var ran []int
	bad := errors.New("bad")
	b.OnFlush(func() error { ran = append(ran, 1); return nil })
	b.OnFlush(func() error {
		ran = append(ran, 2)
		if c := b.Context(); c.Offset() != -1 || c.Partition() != 4 || c.Topic() != "" || c.Headers() != nil {
			t.Error("context of a flush")
		}
		return bad
	})
	b.OnFlush(func() error { ran = append(ran, 3); return nil })
	b.Source(func(c *Context) error { return nil }, nil)
	if err := b.Task().Process(0, &Record{Topic: "in", Offset: 9, Headers: []Header{{}}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Task().Flush(); err != bad || len(ran) != 2 {
		t.Error(err, ran)
	}
}

func TestEmitOutsideOfItsFunction(t *testing.T) {
	b := NewBuilder(Env{})
	var kept func(int)
	f := FlatMap(b.Op("op"), func(_ int, emit func(int)) { kept = emit }, Fan[int, int](nil))
	b.Source(func(c *Context) error { return f(c, 1, 1) }, nil)
	if err := b.Task().Process(0, &Record{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	kept(1)
}
