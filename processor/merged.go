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

// run is the rows of one slice or of one block.
type run[A any] struct {
	rows  *store.Cursor[A]
	level int
	key   []byte // of the head; nil: exhausted
}

func (r *run[A]) advance() {
	if r.key = nil; !r.rows.Next() {
		return
	}
	k := r.rows.Key()
	if r.level > 0 {
		if len(k) == 0 || int(k[0]) != r.level {
			return // another level of the same end
		}
		k = k[1:]
	}
	r.key = k
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
		v, err := r.rows.Value()
		if err != nil {
			return false, err
		}
		t := r.rows.Time()
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
		err = errors.Join(err, m.runs[i].rows.Err())
	}
	return err
}

func (m *merged[A]) close() error {
	var err error
	for i := range m.runs {
		err = errors.Join(err, m.runs[i].rows.Close())
	}
	m.runs = nil
	return err
}
