package processor

// Filter passes the records pred accepts.
func Filter[K, V any](op Op, pred func(V) bool, next Func[K, V]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		c.op = op
		if !pred(v) {
			return nil
		}
		return next(c, k, v)
	}
}

// TryFilter is Filter's long form.
func TryFilter[K, V any](op Op, pred func(*Context, K, V) (bool, error), next Func[K, V]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		headers := c.headers
		c.op = op
		ok, err := pred(c, k, v)
		if err != nil {
			return c.fail(op, StageUser, err)
		}
		if ok {
			if err := next(c, k, v); err != nil {
				return err
			}
		}
		c.headers = headers
		return nil
	}
}

// Map replaces the value.
func Map[K, V, R any](op Op, f func(V) R, next Func[K, R]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		c.op = op
		raw := c.raw
		c.raw = false
		if err := next(c, k, f(v)); err != nil {
			return err
		}
		c.raw = raw
		return nil
	}
}

// TryMap is Map's long form.
func TryMap[K, V, R any](op Op, f func(*Context, K, V) (R, error), next Func[K, R]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		headers, raw := c.headers, c.raw
		c.op = op
		r, err := f(c, k, v)
		if err != nil {
			return c.fail(op, StageUser, err)
		}
		c.raw = false
		if err := next(c, k, r); err != nil {
			return err
		}
		c.headers, c.raw = headers, raw
		return nil
	}
}

// Peek shows the value to f and passes the record on.
func Peek[K, V any](op Op, f func(V), next Func[K, V]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		c.op = op
		f(v)
		return next(c, k, v)
	}
}

// TryPeek is Peek's long form.
func TryPeek[K, V any](op Op, f func(*Context, K, V) error, next Func[K, V]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		headers := c.headers
		c.op = op
		if err := f(c, k, v); err != nil {
			return c.fail(op, StageUser, err)
		}
		if err := next(c, k, v); err != nil {
			return err
		}
		c.headers = headers
		return nil
	}
}

// Recode marks the value's bytes as unusable for what follows: streams that are merged may come in different encodings.
func Recode[K, V any](next Func[K, V]) Func[K, V] {
	return func(c *Context, k K, v V) error {
		raw := c.raw
		c.raw = false
		if err := next(c, k, v); err != nil {
			return err
		}
		c.raw = raw
		return nil
	}
}
