package pebblestore

import (
	"sync"

	"github.com/tidemark/tidemark/store"
)

// calls counts the calls into a database. One into a lazily opened database may wait for a remote store as long as that
// is down, and Close may then come from another goroutine: it frees the calls that wait, and Pebble is closed when all of
// them have returned and their iterators are closed. A call may be made inside another one, by a Run that reads.
type calls struct {
	mu        sync.Mutex
	idle      sync.Cond // n has become 0
	n         int
	closed    bool
	iterators map[*guardedIterator]struct{} // open ones
}

// begin reports whether the call may go on; then end ends it.
func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.closed {
		c.idle.Broadcast()
	}
}

// drain refuses further calls and waits for those in progress, which must have been freed.
func (c *calls) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.idle.L = &c.mu
	for c.n > 0 {
		c.idle.Wait()
	}
	for i := range c.iterators {
		_ = i.inner.Close() // what it had to say, nobody asks any more
	}
	c.iterators = nil
}

// enter begins a call of the interface, which ends with leave unless there is an error.
func (d *DB) enter() error {
	if !d.calls.begin() {
		return store.ErrClosed
	}
	err := d.usable()
	if err != nil {
		d.calls.end()
	}
	return err
}

func (d *DB) leave() { d.calls.end() }

// guardedIterator is an iterator of a database that is not complete yet: Close may close it at any moment.
type guardedIterator struct {
	d          *DB
	inner      *iterator // used inside calls only
	key, value []byte    // copies, for Close frees what the inner ones point to
}

// guard is called inside a call.
func (d *DB) guard(inner *iterator) *guardedIterator {
	i := &guardedIterator{d: d, inner: inner}
	d.calls.mu.Lock()
	defer d.calls.mu.Unlock()
	if d.calls.iterators == nil {
		d.calls.iterators = map[*guardedIterator]struct{}{}
	}
	d.calls.iterators[i] = struct{}{}
	return i
}

func (i *guardedIterator) Next() bool {
	if !i.d.calls.begin() {
		return false
	}
	defer i.d.calls.end()
	if !i.inner.Next() {
		return false
	}
	i.key = append(i.key[:0], i.inner.Key()...)
	i.value = append(i.value[:0], i.inner.Value()...)
	return true
}

func (i *guardedIterator) Key() []byte   { return i.key }
func (i *guardedIterator) Value() []byte { return i.value }

func (i *guardedIterator) Err() error {
	if !i.d.calls.begin() {
		return i.d.fail("scan", store.ErrClosed)
	}
	defer i.d.calls.end()
	return i.inner.Err()
}

func (i *guardedIterator) Close() error {
	if !i.d.calls.begin() {
		return nil // the database has closed it
	}
	defer i.d.calls.end()
	i.d.calls.mu.Lock()
	_, mine := i.d.calls.iterators[i]
	delete(i.d.calls.iterators, i)
	i.d.calls.mu.Unlock()
	if !mine {
		return nil
	}
	return i.inner.Close()
}
