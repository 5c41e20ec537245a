package processor

import (
	"encoding/binary"
	"slices"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/window"
)

// maxPartials is how many partial aggregates are held before they are sent without waiting for the commit.
const maxPartials = 50_000

// PartialConfig describes the first half of an aggregate that combines records before they are repartitioned.
type PartialConfig[K, V, A any] struct {
	Op     Op             // the KeyBy
	Index  int            // of its repartition among the sub-topology's sinks
	Window *window.Config // nil for an aggregate without windows
	Value  codec.Codec[A] // of partial aggregates
	Step   Step[K, V, A]  // how a value is added
}

// partials are the partial aggregates of a task since the last commit: one per key and slice of time in which all records
// belong to the same windows. They are sent before the commit, and before the watermark is announced, so that no record
// gets late by waiting. They are not stored: what is lost in an abort is read again.
type partials[K, V, A any] struct {
	PartialConfig[K, V, A]
	c      *Context
	rows   map[string]*partial[A]
	bounds []window.Bounds
	buf    []byte
}

// partial is one partial aggregate.
type partial[A any] struct {
	acc     A
	time    int64 // latest of its records
	records uint64
}

// NewPartials returns what adds a record, under its new key, and what sends the partial aggregates.
func NewPartials[K, V, A any](c *Context, p PartialConfig[K, V, A]) (add func(c *Context, key []byte, v V) error, flush func() error) {
	o := &partials[K, V, A]{PartialConfig: p, c: c, rows: map[string]*partial[A]{}}
	return o.add, o.flush
}

// slice returns the end of the slice of time that ts is in.
func (o *partials[K, V, A]) slice(ts int64) int64 {
	switch {
	case o.Window == nil:
		return 0
	case o.Window.Window.SliceWidth() > 0:
		return o.Window.Window.Slice(ts).End
	}
	o.bounds = o.Window.Window.Assign(o.bounds[:0], ts)
	return o.bounds[0].End
}

func (o *partials[K, V, A]) add(c *Context, key []byte, v V) error {
	if key == nil {
		return c.fail(o.Op, StageNullKey, ErrNull)
	}
	// The end of the slice in front keeps the order in which partial aggregates are sent that of time.
	o.buf = binary.BigEndian.AppendUint64(o.buf[:0], uint64(o.slice(c.time))^1<<63)
	o.buf = append(o.buf, key...)
	p := o.rows[string(o.buf)]
	have := p != nil
	if !have {
		p = &partial[A]{time: c.time}
	}
	var none K
	acc, err := o.Step(c, none, p.acc, have, v)
	if err != nil {
		return c.fail(o.Op, StageUser, err)
	}
	c.effects++
	p.acc, p.time = acc, max(p.time, c.time)
	p.records++
	if !have {
		o.rows[string(o.buf)] = p
		if len(o.rows) >= maxPartials {
			return o.send(c)
		}
	}
	return nil
}

func (o *partials[K, V, A]) flush() error { return o.send(o.c) }

func (o *partials[K, V, A]) send(c *Context) error {
	if len(o.rows) == 0 {
		return nil
	}
	keys := make([]string, 0, len(o.rows))
	var all, hottest uint64
	for k, p := range o.rows {
		keys = append(keys, k)
		all += p.records
		hottest = max(hottest, p.records)
	}
	slices.Sort(keys)
	n := &c.counters[o.Op]
	n.Combined, n.Hottest = n.Combined+all, n.Hottest+hottest
	time, headers := c.time, c.headers
	c.headers = nil
	for _, k := range keys {
		p := o.rows[k]
		key := c.slab.copy([]byte(k[8:]))
		b, err := o.Value.Append(c.slab.room(), p.acc)
		if err != nil {
			return c.fail(o.Op, StageEncode, err)
		}
		c.time = p.time
		if err := c.emit(o.Op, o.Index, key, c.slab.take(b)); err != nil {
			return err
		}
	}
	c.time, c.headers = time, headers
	clear(o.rows)
	return nil
}

// RepartitionPartial is a KeyBy that cuts and whose records are combined first.
func RepartitionPartial[K, V, K2 any](op Op, f func(*Context, K, V) (K2, error), kc codec.Codec[K2], add func(*Context, []byte, V) error) Func[K, V] {
	null := nullOf(kc)
	var buf []byte
	return func(c *Context, k K, v V) error {
		c.op = op
		k2, err := f(c, k, v)
		if err != nil {
			return c.fail(op, StageUser, err)
		}
		if null != nil && null.IsNull(k2) {
			return add(c, nil, v)
		}
		b, err := kc.Append(buf[:0], k2)
		if err != nil {
			return c.fail(op, StageEncode, err)
		}
		buf = b
		return add(c, nonNil(b), v)
	}
}
