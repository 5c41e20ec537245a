package processor

// flatMap holds what emit needs while the user function of a FlatMap runs. There is one per operator and task, so that
// emit is built once and no record allocates.
type flatMap[K, R any] struct {
	c    *Context
	op   Op
	k    K
	next Func[K, R]
	err  error
}

func (m *flatMap[K, R]) emit(r R) error {
	if m.c == nil {
		panic("processor: emit called outside of its function")
	}
	if m.err != nil {
		return m.err
	}
	// The user function may add headers between two emits; each emitted record has those added so far.
	headers := m.c.headers
	m.err = m.next(m.c, m.k, r)
	m.c.headers, m.c.op, m.c.raw = headers, m.op, false
	return m.err
}

// run calls f with the state of one record around it.
func (m *flatMap[K, R]) run(c *Context, k K, f func() error) error {
	headers, raw := c.headers, c.raw
	c.op, c.raw = m.op, false
	m.c, m.k, m.err = c, k, nil
	err := f()
	m.c = nil
	if m.err != nil {
		return m.err
	}
	if err != nil {
		return c.fail(m.op, StageUser, err)
	}
	c.headers, c.raw = headers, raw
	return nil
}

// FlatMap lets f emit any number of values for one. An error downstream ends the record once f returns; what f emits
// after it is ignored.
func FlatMap[K, V, R any](op Op, f func(V, func(R)), next Func[K, R]) Func[K, V] {
	m := &flatMap[K, R]{op: op, next: next}
	emit := func(r R) { _ = m.emit(r) } // kept in m.err
	var v V
	call := func() error { f(v, emit); return nil }
	return func(c *Context, k K, value V) error {
		v = value
		return m.run(c, k, call)
	}
}

// TryFlatMap is FlatMap's long form. emit returns the error of what is downstream, so that f can stop early.
func TryFlatMap[K, V, R any](op Op, f func(*Context, K, V, func(R) error) error, next Func[K, R]) Func[K, V] {
	m := &flatMap[K, R]{op: op, next: next}
	emit := m.emit
	var v V
	call := func() error { return f(m.c, m.k, v, emit) }
	return func(c *Context, k K, value V) error {
		v = value
		return m.run(c, k, call)
	}
}
