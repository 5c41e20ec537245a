package processor

import "github.com/tidemark/tidemark/codec"

// KeyBy sets the key to f's result for what follows, within the task.
func KeyBy[K, V, K2 any](op Op, f func(*Context, K, V) (K2, error), kc codec.Codec[K2], next Func[K2, V]) Func[K, V] {
	null := nullOf(kc)
	var buf []byte
	return func(c *Context, k K, v V) error {
		headers, key, shared := c.headers, c.key, c.keyShared
		c.op = op
		k2, err := f(c, k, v)
		if err != nil {
			return c.fail(op, StageUser, err)
		}
		if null != nil && null.IsNull(k2) {
			c.key = nil
		} else {
			b, err := kc.Append(buf[:0], k2)
			if err != nil {
				return c.fail(op, StageEncode, err)
			}
			buf, c.key, c.keyShared = b, nonNil(b), true
		}
		if err := next(c, k2, v); err != nil {
			return err
		}
		c.headers, c.key, c.keyShared = headers, key, shared
		return nil
	}
}

// Repartition is a KeyBy that cuts: it sends the record to a repartition topic under its new key.
func Repartition[K, V, K2 any](f func(*Context, K, V) (K2, error), s Sink[K2, V]) Func[K, V] {
	null := nullOf(s.Key)
	return func(c *Context, k K, v V) error {
		headers := c.headers
		c.op = s.Op
		k2, err := f(c, k, v)
		if err != nil {
			return c.fail(s.Op, StageUser, err)
		}
		var key []byte
		if null == nil || !null.IsNull(k2) {
			b, err := s.Key.Append(c.slab.room(), k2)
			if err != nil {
				return c.fail(s.Op, StageEncode, err)
			}
			key = c.slab.take(b)
		}
		if err := s.send(c, key, v); err != nil {
			return err
		}
		c.headers = headers
		return nil
	}
}

// nonNil returns b, or an empty slice if it is nil: an empty key is not a null key.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
