package processor

import (
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/window"
)

// Pane is one result of one window of one key.
type Pane[K, A any] struct {
	window.Pane
	Key   K
	Value A
	// Op is zero for a result that stands for itself. In window.ModeRetracting it says whether Value is taken back
	// (OpRetract), put in its place (OpAssert), or whether the window is gone (OpDelete, without a value). A session that
	// was absorbed by another one is gone in the other modes as well.
	Op window.Op
}

// PaneFunc is one operator behind a windowed aggregate as it runs. The pane is the caller's, who reuses it.
type PaneFunc[K, A any] func(c *Context, p *Pane[K, A]) error

// PaneFan returns one PaneFunc that calls all of next in order, nil for none.
func PaneFan[K, A any](next []PaneFunc[K, A]) PaneFunc[K, A] {
	switch len(next) {
	case 0:
		return nil
	case 1:
		return next[0]
	}
	return func(c *Context, p *Pane[K, A]) error {
		for _, f := range next {
			if err := f(c, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// PaneMap turns panes into records. A window that is gone makes none: its last value was retracted before, if anybody
// follows retractions.
func PaneMap[K, A, R any](op Op, f func(*Context, *Pane[K, A]) (R, error), next Func[K, R]) PaneFunc[K, A] {
	return func(c *Context, p *Pane[K, A]) error {
		if p.Op == window.OpDelete {
			return nil
		}
		headers := c.headers
		c.op = op
		r, err := f(c, p)
		if err != nil {
			return c.fail(op, StageUser, err)
		}
		if err := next(c, p.Key, r); err != nil {
			return err
		}
		c.headers = headers
		return nil
	}
}

// PaneFilter passes the panes that pred accepts.
func PaneFilter[K, A any](op Op, pred func(*Pane[K, A]) bool, next PaneFunc[K, A]) PaneFunc[K, A] {
	return func(c *Context, p *Pane[K, A]) error {
		c.op = op
		if !pred(p) {
			return nil
		}
		return next(c, p)
	}
}

// PanePeek shows panes to f.
func PanePeek[K, A any](op Op, f func(*Pane[K, A]), next PaneFunc[K, A]) PaneFunc[K, A] {
	return func(c *Context, p *Pane[K, A]) error {
		c.op = op
		f(p)
		return next(c, p)
	}
}

// shower emits the panes of one operator. Its windows may fire while a record is processed, when the watermark moves, or
// at a deadline.
type shower[K, A any] struct {
	op    Op
	cfg   *window.Config
	key   codec.Codec[K] // decodes the key for what follows; nil if nothing there uses it
	value codec.Codec[A]
	next  PaneFunc[K, A]
	pane  Pane[K, A]
	buf   []byte
}

// hash returns what tells an emitted value from the next, if the configuration asks for it.
func (s *shower[K, A]) hash(c *Context, v A) (uint64, error) {
	if !s.cfg.NeedsHash() {
		return 0, nil
	}
	b, err := s.value.Append(s.buf[:0], v)
	if err != nil {
		return 0, c.fail(s.op, StageEncode, err)
	}
	s.buf = b
	return window.Hash(b), nil
}

// settle carries out that a window has fired on time since its row was stored: what the row held was shown then.
func (s *shower[K, A]) settle(c *Context, v *cell[A]) error {
	switch s.cfg.Mode {
	case window.ModeDiscarding:
		var zero A
		v.Acc = zero
		return nil
	case window.ModeRetracting:
		v.Last = v.Acc
	}
	h, err := s.hash(c, v.Acc)
	v.State.Hash = h
	return err
}

// fire decides about the pane of a decision and changes the cell accordingly. What is shown is in the result; emit does
// it, after the row is stored.
func (s *shower[K, A]) fire(c *Context, v *cell[A], b window.Bounds, d window.Decision, w int64) (f firing[A], err error) {
	h := uint64(0)
	if d.Timing != window.TimingOnTime {
		if h, err = s.hash(c, v.Acc); err != nil {
			return f, err
		}
	}
	f.pane, f.ok = s.cfg.Fire(&v.State, b, d, w, h)
	if !f.ok {
		c.counters[s.op].Suppressed++
		return f, nil
	}
	f.value = v.Acc
	switch s.cfg.Mode {
	case window.ModeDiscarding:
		var zero A
		v.Acc = zero
	case window.ModeRetracting:
		f.retract, f.last = d.Retract, v.Last
		v.Last = v.Acc
	}
	return f, nil
}

// firing is a pane that is due.
type firing[A any] struct {
	pane    window.Pane
	ok      bool
	value   A
	retract bool // last was shown before
	last    A
}

// emit passes a firing on under the key in the context; k is the typed one.
func (s *shower[K, A]) emit(c *Context, k K, f *firing[A]) error {
	if !f.ok {
		return nil
	}
	n := &c.counters[s.op]
	n.Panes[f.pane.Timing]++
	c.effects++
	if s.next == nil {
		return nil
	}
	p := &s.pane
	p.Pane, p.Key = f.pane, k
	c.time = f.pane.MaxTime
	if f.retract {
		n.Retractions++
		p.Value, p.Op = f.last, window.OpRetract
		if err := s.pass(c, p); err != nil {
			return err
		}
	}
	p.Value, p.Op = f.value, 0
	if s.cfg.Mode == window.ModeRetracting {
		p.Op = window.OpAssert
	}
	return s.pass(c, p)
}

// gone tells that a window which was shown is no longer one. In ModeRetracting, last is the value shown.
func (s *shower[K, A]) gone(c *Context, k K, b window.Bounds, maxTime, w int64, last A) error {
	if s.next == nil {
		return nil
	}
	c.effects++
	p := &s.pane
	p.Pane, p.Key = window.Pane{Bounds: b, Watermark: w, MaxTime: maxTime}, k
	c.time = maxTime
	if s.cfg.Mode == window.ModeRetracting {
		c.counters[s.op].Retractions++
		p.Value, p.Op = last, window.OpRetract
		if err := s.pass(c, p); err != nil {
			return err
		}
	}
	var zero A
	p.Value, p.Op = zero, window.OpDelete
	return s.pass(c, p)
}

func (s *shower[K, A]) pass(c *Context, p *Pane[K, A]) error {
	before := c.change
	c.change = p.Op
	err := s.next(c, p)
	c.change = before
	return err
}

// aside sets the context to a pane of the record in hand and returns what restores it.
type aside struct {
	time    int64
	headers []Header
	raw     bool
}

func (c *Context) setAside() aside {
	a := aside{c.time, c.headers, c.raw}
	c.headers, c.raw = nil, false
	return a
}

func (c *Context) restore(a aside) { c.time, c.headers, c.raw = a.time, a.headers, a.raw }

// keyOf puts a stored key into the context and returns the typed one, if anything asks for it.
func (s *shower[K, A]) keyOf(c *Context, key []byte) (k K, err error) {
	c.key, c.keyShared = key, true
	if s.key != nil {
		// A decoded key may share memory with its bytes, and those are the store's.
		c.key, c.keyShared = c.slab.copy(key), false
		if k, err = s.key.Decode(c.key); err != nil {
			return k, c.fail(s.op, StageDecodeKey, err)
		}
	}
	return k, nil
}
