package processor

// Branch is one way out of a Split.
type Branch[K, V any] struct {
	Accept func(c *Context, k K, v V) (bool, error) // its predicate
	Op     Op                                       // its operator
	Next   Func[K, V]                               // what follows
}

// Split sends a record down the first branch that accepts it, else to rest. A nil rest drops and counts it.
func Split[K, V any](branches []Branch[K, V], rest Func[K, V]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		headers := c.headers
		for i := range branches {
			b := &branches[i]
			c.op = b.Op
			ok, err := b.Accept(c, k, v)
			if err != nil {
				return c.fail(b.Op, StageUser, err)
			}
			if ok {
				err := b.Next(c, k, v)
				c.headers = headers
				return err
			}
			c.headers = headers
		}
		if rest == nil {
			c.dropped++
			return nil
		}
		return rest(c, k, v)
	}
}
