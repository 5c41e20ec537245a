package processor

import (
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// Sink sends records to a topic.
type Sink[K, V any] struct {
	Op        Op
	Index     int            // in the sub-topology's sinks
	Key       codec.Codec[K] // of the topic
	Value     codec.Codec[V]
	PassKey   bool // the bytes of the key in hand are already those of Key
	Origin    bool // records carry the watermark of their first source partition in a header
	PassValue bool // value bytes that no operator touched are already those of Value

	null codec.Nullable[V]
}

// Stream returns the operator that sends every record. A null value is sent as null.
func (s Sink[K, V]) Stream() Func[K, V] {
	s.null = nullOf(s.Value)
	return func(c *Context, k K, v V) error {
		key, err := s.key(c, k)
		if err != nil {
			return err
		}
		return s.send(c, key, v)
	}
}

// Table returns the operator that sends every change: the new value, or a tombstone for a delete.
func (s Sink[K, V]) Table() TableFunc[K, V] {
	s.null = nullOf(s.Value)
	return func(c *Context, k K, d *Delta[V]) error {
		key, err := s.key(c, k)
		if err != nil {
			return err
		}
		if d.Has {
			return s.send(c, key, d.New)
		}
		return c.emit(s.Op, s.Index, key, nil)
	}
}

// key returns the key's bytes in memory that never changes again.
func (s *Sink[K, V]) key(c *Context, k K) ([]byte, error) {
	switch {
	case c.key == nil:
		return nil, nil
	case !s.PassKey:
		c.op = s.Op
		b, err := s.Key.Append(c.slab.room(), k)
		if err != nil {
			return nil, c.fail(s.Op, StageEncode, err)
		}
		return c.slab.take(b), nil
	case c.keyShared:
		return c.slab.copy(c.key), nil
	}
	return c.key, nil
}

func (s *Sink[K, V]) send(c *Context, key []byte, v V) error {
	var value []byte
	switch {
	case c.raw && s.PassValue:
		value = c.value
	case s.null != nil && s.null.IsNull(v):
	default:
		c.op = s.Op
		b, err := s.Value.Append(c.slab.room(), v)
		if err != nil {
			return c.fail(s.Op, StageEncode, err)
		}
		value = c.slab.take(b)
	}
	if !s.Origin {
		return c.emit(s.Op, s.Index, key, value)
	}
	headers := c.headers
	origin := c.slab.take(watermark.AppendHeader(c.slab.room(), c.origin))
	c.headers = append(headers[:len(headers):len(headers)], Header{watermark.WatermarkHeader, origin})
	err := c.emit(s.Op, s.Index, key, value)
	c.headers = headers
	return err
}

// emit sends the record in hand. An error of the output is remembered, so that user code between here and the task
// cannot turn it into its own. An output that refuses a record as such says so with an Error, and it has not sent it.
func (c *Context) emit(op Op, sink int, key, value []byte) error {
	return c.emitTo(op, sink, key, key, value)
}

// emitTo is emit for a record that is partitioned by something else than its key.
func (c *Context) emitTo(op Op, sink int, by, key, value []byte) error {
	headers := c.headers
	if c.change != 0 && !hasOp(headers) {
		headers = append(headers[:len(headers):len(headers)], Header{window.OpHeader, opHeaders[c.change]})
	}
	err := c.out.Send(sink, by, c.time, key, value, headers)
	if err == nil {
		c.effects++
		return nil
	}
	return c.sendError(op, key, err)
}

// sendError completes and remembers an error of the output.
func (c *Context) sendError(op Op, key []byte, err error) error {
	if e, ok := err.(*Error); ok && e.Operator == "" {
		refused := *e
		refused.Operator, refused.Key = c.operators[op], cloneKey(key)
		err = &refused
	}
	c.broken = err
	return err
}

// hasOp reports whether the headers say already what a record does to earlier results.
func hasOp(headers []Header) bool {
	n := len(headers)
	return n > 0 && headers[n-1].Key == window.OpHeader
}
