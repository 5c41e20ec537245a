package store

import "sync"

// gate lets readers into the DB of a State until it is closed. Whoever closes it waits for single reads only, never for
// somebody who holds an iterator: those are closed under their users, who get ErrClosed.
type gate struct {
	mu     sync.RWMutex
	closed bool

	list sync.Mutex
	open map[*gatedIterator]struct{}
}

func newGate() *gate { return &gate{open: make(map[*gatedIterator]struct{})} }

// read calls fn unless the gate is closed.
func (g *gate) read(fn func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return ErrClosed
	}
	return fn()
}

// close keeps readers out from now on and closes their iterators.
func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	var err error
	for it := range g.open {
		if e := it.it.Close(); err == nil {
			err = e
		}
	}
	g.open = nil
	return err
}

// scan opens an iterator of the DB.
func (g *gate) scan(db DB, lo, hi []byte) (*gatedIterator, error) {
	out := &gatedIterator{gate: g}
	err := g.read(func() (err error) {
		if out.it, err = db.Scan(lo, hi); err == nil {
			g.list.Lock()
			defer g.list.Unlock()
			g.open[out] = struct{}{}
		}
		return err
	})
	return out, err
}

// gatedIterator is an iterator of a DB that may be closed meanwhile. Its keys come without the number of the store, and are
// copied as values are: the iterator's own bytes go with it.
type gatedIterator struct {
	gate       *gate
	it         Iterator
	key, value []byte
	err        error
}

func (i *gatedIterator) Next() (ok bool) {
	if i.err != nil {
		return false
	}
	i.err = i.gate.read(func() error {
		if ok = i.it.Next(); ok {
			i.key = append(i.key[:0], i.it.Key()[numberLen:]...)
			i.value = append(i.value[:0], i.it.Value()...)
			return nil
		}
		return i.it.Err()
	})
	return ok && i.err == nil
}

func (i *gatedIterator) Key() []byte   { return i.key }
func (i *gatedIterator) Value() []byte { return i.value }
func (i *gatedIterator) Err() error    { return i.err }

func (i *gatedIterator) Close() error {
	err := i.gate.read(func() error {
		i.gate.list.Lock()
		_, mine := i.gate.open[i]
		delete(i.gate.open, i)
		i.gate.list.Unlock()
		if !mine {
			return nil
		}
		return i.it.Close()
	})
	if err == ErrClosed {
		return nil // the gate has closed it
	}
	return err
}
