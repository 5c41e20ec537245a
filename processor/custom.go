package processor

import (
	"errors"

	"github.com/tidemark/tidemark/codec"
)

// Message is one record as a custom processor sees it. The embedded Context holds the rest: headers, timestamp, topic,
// offset, encoded key.
type Message[K, V any] struct {
	*Context
	Key   K // the zero value for a null key, if K has no null
	Value V
}

// Processor is a custom operator with a life of its own: one is made per task. Process runs once per record, on the
// task's goroutine. A Processor that has an Open(TaskID) error method is opened before its first record; one that has
// Close() error is closed with its task, after an abort as well. OnTimer and OnTick are described at Timer and Tick.
type Processor[K, V, K2, V2 any] interface {
	Process(out Emitter[K2, V2], m Message[K, V]) error
}

// ProcessorFunc is a Processor that is only a function.
type ProcessorFunc[K, V, K2, V2 any] func(out Emitter[K2, V2], m Message[K, V]) error

// Process implements Processor.
func (f ProcessorFunc[K, V, K2, V2]) Process(out Emitter[K2, V2], m Message[K, V]) error {
	return f(out, m)
}

// Scoped is implemented by Emitter: what store handles and side outputs need to find their task.
type Scoped interface {
	// Scope returns what the processor that runs may use.
	Scope() *Scope
}

// Scope is what one custom processor of one task may use.
type Scope struct {
	c     *Context
	op    Op
	slots []any // by handle: *KV[K, V], *Port[K, V], or nil if the processor does not list it
	time  *customTime
}

// NewScope returns the scope of a processor with room for so many handles. node is its watermark, nil if nothing it lists
// asks for one.
func NewScope(b *Builder, op Op, node *Node, handles int) *Scope {
	s := &Scope{c: b.Context(), op: op, slots: make([]any, handles), time: &customTime{op: op, node: node}}
	if node != nil {
		node.work = s.time
	}
	return s
}

// Put fills the slot of a handle.
func (s *Scope) Put(handle int, v any) { s.slots[handle] = v }

// Slot returns what the handle stands for in this task, nil if the processor does not list it.
func (s *Scope) Slot(handle int) any {
	if handle < len(s.slots) {
		return s.slots[handle]
	}
	return nil
}

// Emitter is how a custom processor emits. It is valid while the processor runs. Errors of what is downstream end the
// record once the processor returns; what it emits after one is ignored.
type Emitter[K, V any] struct{ p *Port[K, V] }

// Scope implements Scoped.
func (e Emitter[K, V]) Scope() *Scope { return e.p.scope }

// Emit passes a record on with the timestamp and the headers in hand.
func (e Emitter[K, V]) Emit(k K, v V) { e.p.EmitNow(k, v) }

// EmitAt passes a record on with a timestamp of its own, in ms since the epoch.
func (e Emitter[K, V]) EmitAt(time int64, k K, v V) { e.p.Emit(time, k, v) }

// ErrKeyChanged is the cause of an Error of a processor that promised to keep keys and emitted another one.
var ErrKeyChanged = errors.New("emitted under another key than the record's")

// Port is one output of a custom processor: its main output or a side output.
type Port[K, V any] struct {
	scope *Scope
	key   codec.Codec[K]
	null  codec.Nullable[K]
	keep  bool
	next  Func[K, V]
	buf   []byte
}

// NewPort returns an output. With keep, every emitted key must be that of the record.
func NewPort[K, V any](s *Scope, key codec.Codec[K], keep bool, next Func[K, V]) *Port[K, V] {
	return &Port[K, V]{scope: s, key: key, null: nullOf(key), keep: keep, next: next}
}

// EmitNow passes a record on with the timestamp in hand.
func (p *Port[K, V]) EmitNow(k K, v V) { p.Emit(p.scope.c.time, k, v) }

// Emit passes a record on with a timestamp of its own.
func (p *Port[K, V]) Emit(time int64, k K, v V) {
	c := p.scope.c
	if c.emitErr != nil {
		return
	}
	in := state{key: c.key, shared: c.keyShared, raw: c.raw, time: c.time, headers: c.headers}
	if p.null != nil && p.null.IsNull(k) {
		c.key, c.keyShared = nil, false
	} else {
		b, err := p.key.Append(p.buf[:0], k)
		if err != nil {
			c.emitErr = c.fail(p.scope.op, StageEncode, err)
			return
		}
		p.buf, c.key, c.keyShared = b, nonNil(b), true
	}
	if p.keep && (in.key == nil) != (c.key == nil) || p.keep && string(in.key) != string(c.key) {
		c.key = in.key
		c.emitErr = c.fail(p.scope.op, StageUser, ErrKeyChanged)
		return
	}
	c.raw, c.time = false, time
	err := p.next(c, k, v)
	c.emitErr = err
	c.op = p.scope.op
	c.key, c.keyShared, c.raw, c.time, c.headers = in.key, in.shared, in.raw, in.time, in.headers
}

// state is what of a context an emission changes.
type state struct {
	key         []byte
	shared, raw bool
	time        int64
	headers     []Header
}

// CustomConfig describes a custom processor.
type CustomConfig[K, V, K2, V2 any] struct {
	Scope     *Scope                  // what it may use
	Processor Processor[K, V, K2, V2] // it
	Out       *Port[K2, V2]           // its main output
	// Keyed refuses records without a key: the processor has stores, whose rows live with the key's partition.
	Keyed bool
	Key   codec.Codec[K] // of the records it gets; timers need it
}

// Custom returns the operator that runs a custom processor. The error is ErrNoMethod if it lists what calls a method it
// does not have.
func Custom[K, V, K2, V2 any](b *Builder, p CustomConfig[K, V, K2, V2]) (Func[K, V], error) {
	op, out := p.Scope.op, Emitter[K2, V2]{p.Out}
	if err := p.watch(b); err != nil {
		return nil, err
	}
	return func(c *Context, k K, v V) error {
		if p.Keyed && c.key == nil {
			return c.fail(op, StageNullKey, ErrNull)
		}
		headers, outer := c.headers, c.emitErr
		c.op, c.emitErr = op, nil
		err := p.Processor.Process(out, Message[K, V]{Context: c, Key: k, Value: v})
		switch {
		case c.broken != nil:
			return c.broken
		case c.emitErr != nil:
			return c.emitErr
		case err != nil:
			return c.fail(op, StageUser, err)
		}
		c.headers, c.emitErr = headers, outer
		return nil
	}, nil
}

// Manage opens a processor that wants to be and has the task close it.
func Manage(b *Builder, processor any) error {
	if p, ok := processor.(interface{ Open(TaskID) error }); ok {
		if err := p.Open(b.Env().Task); err != nil {
			return err
		}
	}
	if p, ok := processor.(interface{ Close() error }); ok {
		b.OnClose(p.Close)
	}
	return nil
}
