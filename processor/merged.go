package processor

import (
	"bytes"
	"errors"

	"github.com/tidemark/tidemark/store"
)

// merged reads several runs of rows side by side: key by key, with one value for the rows of all runs. An older run comes
// before a younger one, and its value is the first argument of merge.
type merged[A any] struct {
	runs  []run[A]
	merge func(a, b A) A
	key   []byte // of the present row
	acc   A
	time  int64 // the highest of the rows
}

// run is the rows of one slice or of one block, from a list or else from the store.
type run[A any] struct {
	list  *rowList[A]
	next  int // in the list
	rows  *store.Cursor[A]
	level int
	key   []byte // of the head; nil: exhausted

	// What was read from the store goes into the cache once it is complete. nil: not from the first row on, or too much.
	cache  *blockCache[A]
	of     block
	record *rowList[A]
}

// head returns the value and the time of the row with the key in hand.
func (r *run[A]) head() (acc A, time int64, err error) {
	if r.list != nil {
		return r.list.accs[r.next-1], r.list.at[r.next-1], nil
	}
	if acc, err = r.rows.Value(); err != nil {
		return acc, 0, err
	}
	time = r.rows.Time()
	if r.record != nil {
		if r.record.add(r.key, acc, time); len(r.record.at) > maxCached {
			r.record = nil
		}
	}
	return acc, time, nil
}

func (r *run[A]) advance() {
	r.key = nil
	if r.list != nil {
		if r.next < len(r.list.at) {
			r.key = r.list.key(r.next)
			r.next++
		}
		return
	}
	if !r.rows.Next() {
		r.complete()
		return
	}
	k := r.rows.Key()
	if r.level > 0 {
		if len(k) == 0 || int(k[0]) != r.level {
			r.complete() // another level of the same end
			return
		}
		k = k[1:]
	}
	r.key = k
}

func (r *run[A]) complete() {
	if r.record != nil && r.rows.Err() == nil {
		r.cache.put(r.of, r.record)
	}
	r.record = nil
}

// next moves to the next key.
func (m *merged[A]) next() (bool, error) {
	at := -1
	for i := range m.runs {
		if k := m.runs[i].key; k != nil && (at < 0 || bytes.Compare(k, m.runs[at].key) < 0) {
			at = i
		}
	}
	if at < 0 {
		return false, m.err()
	}
	m.key = append(m.key[:0], m.runs[at].key...)
	for i, first := at, true; i < len(m.runs); i++ {
		r := &m.runs[i]
		if r.key == nil || !bytes.Equal(r.key, m.key) {
			continue
		}
		v, t, err := r.head()
		if err != nil {
			return false, err
		}
		if first {
			m.acc, m.time, first = v, t, false
		} else {
			m.acc, m.time = m.merge(m.acc, v), max(m.time, t)
		}
		r.advance()
	}
	return true, nil
}

func (m *merged[A]) err() error {
	var err error
	for i := range m.runs {
		if r := m.runs[i].rows; r != nil {
			err = errors.Join(err, r.Err())
		}
	}
	return err
}

func (m *merged[A]) close() error {
	var err error
	for i := range m.runs {
		if r := m.runs[i].rows; r != nil {
			err = errors.Join(err, r.Close())
		}
	}
	m.runs = nil
	return err
}
