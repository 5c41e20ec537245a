package processor

import "github.com/tidemark/tidemark/codec"

// Func is one operator of a stream as it runs: it takes a record and calls what follows. What the typed key or value
// holds is undefined where no operator downstream uses it. An operator that changes a field of the context for what
// follows restores it before it returns nil; after an error the record is over, so nothing is restored.
type Func[K, V any] func(c *Context, k K, v V) error

// Fan returns one Func that calls all of next in order.
func Fan[K, V any](next []Func[K, V]) Func[K, V] {
	switch len(next) {
	case 0:
		return func(*Context, K, V) error { return nil }
	case 1:
		return next[0]
	case 2:
		first, second := next[0], next[1]
		return func(c *Context, k K, v V) error {
			if err := first(c, k, v); err != nil {
				return err
			}
			return second(c, k, v)
		}
	}
	return func(c *Context, k K, v V) error {
		for _, f := range next {
			if err := f(c, k, v); err != nil {
				return err
			}
		}
		return nil
	}
}

// nullOf returns the Nullable side of a codec, or nil.
func nullOf[T any](c codec.Codec[T]) codec.Nullable[T] {
	n, _ := c.(codec.Nullable[T])
	return n
}
