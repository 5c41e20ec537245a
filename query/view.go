package query

import (
	"encoding/binary"
	"errors"

	"github.com/tidemark/tidemark/store"
)

// Rows is what the stores of a task hold as of one commit, by index of the store in the specs of the sub-topology. Rows
// are as in a store.DB: timestamp, 8 bytes, and value.
type Rows interface {
	// Get appends the row of a key to dst.
	Get(dst []byte, store int, key []byte) (row []byte, ok bool, err error)
	// Scan iterates over the rows with lo <= key < hi; a nil hi is open. Keys come without the number of the store.
	Scan(store int, lo, hi []byte) (store.Iterator, error)
	// Group returns the first eight bytes of a key at or behind at of a store of kind Window: those of the first window that
	// may have rows.
	Group(store int, at []byte) (prefix []byte, ok bool, err error)
}

// View is the state of one task as of one commit. It is used by one goroutine at a time and must be closed.
type View struct {
	Meta
	rows  Rows
	check func() error
	done  func()
}

// NewView returns a view of rows. check is called after every read, and its error, an *Error, takes the place of what was
// read: it says whether the task is still this instance's. done is called by the first Close. Both may be nil.
func NewView(m Meta, r Rows, check func() error, done func()) *View {
	return &View{Meta: m, rows: r, check: check, done: done}
}

// Close lets go of the view. Further calls do nothing.
func (v *View) Close() {
	if v.done != nil {
		v.done()
		v.done = nil
	}
}

// still returns the error that takes the place of an answer.
func (v *View) still() error {
	if v.check == nil {
		return nil
	}
	return v.check()
}

// stillOf is still for the end of a read of a store.
func (v *View) stillOf(s *Store) error { return failed(s, v.still()) }

func failed(s *Store, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Reason: Failed, Message: "the store cannot be read", Store: s.ID, Err: err}
}

// Get returns the row of a key: for a versioned store its latest value. Stores of windows, sessions and lists have no
// single row of a key: WrongKind.
func (v *View) Get(s *Store, key []byte) (Row, bool, error) {
	switch s.Kind {
	case KeyValue, Expiring:
	case Versioned:
		return v.AsOf(s, key, maxTime)
	default:
		return Row{}, false, Errorf(WrongKind, "store %s is one of kind %s: ask for the windows, sessions or values of the key", s.ID, s.Kind)
	}
	b, ok, err := v.rows.Get(nil, s.Index, key)
	if err == nil {
		err = v.still()
	}
	if err != nil {
		return Row{}, false, failed(s, err)
	}
	if !ok {
		return Row{}, false, nil
	}
	return UserRow(s, key, b)
}

const maxTime = 1<<63 - 1

// AsOf returns the value that a key of a versioned store had at a time, in ms. ok is false if it had none.
func (v *View) AsOf(s *Store, key []byte, at int64) (r Row, ok bool, err error) {
	if s.Kind != Versioned {
		return Row{}, false, Errorf(WrongKind, "store %s is one of kind %s: it keeps no history", s.ID, s.Kind)
	}
	lo := store.AppendVersionKey(nil, key, at)
	err = v.scan(s, lo, store.Successor(lo[:len(lo)-8]), func(k, b []byte) (bool, error) {
		r, ok, err = UserRow(s, k, b)
		return false, err
	})
	return r, ok && !r.Deleted, err
}

// scan calls fn for rows until it returns false, and then looks whether they still count.
func (v *View) scan(s *Store, lo, hi []byte, fn func(key, row []byte) (bool, error)) error {
	it, err := v.rows.Scan(s.Index, lo, hi)
	if err != nil {
		return failed(s, err)
	}
	for it.Next() {
		more, err := fn(it.Key(), it.Value())
		if err != nil {
			return failed(s, errors.Join(err, it.Close()))
		}
		if !more {
			break
		}
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return failed(s, err)
	}
	return v.stillOf(s)
}

var errRow = errors.New("a row is not in the layout of its store")

// UserRow returns the row that readers see of a row of a DB; ok is false if there is none, as for the row that holds the
// length of a list. A nil b is a row that was deleted. The result shares nothing with its input.
func UserRow(s *Store, key, b []byte) (r Row, ok bool, err error) {
	if b == nil {
		r.Deleted = true
	} else {
		if len(b) < 8 {
			return r, false, failed(s, errRow)
		}
		r.Time = int64(binary.BigEndian.Uint64(b))
		b = b[8:]
	}
	ok = true
	switch s.Kind {
	case KeyValue:
		r.Key = key
	case Expiring:
		if r.Key = key; b != nil {
			if len(b) < 8 {
				return r, false, failed(s, errRow)
			}
			b = b[8:]
		}
	case Window:
		if r.End, r.Key, ok = store.ParseWindowKey(key); ok {
			if s.Sliced != nil {
				r.Start = r.End - s.Sliced.Width
			} else {
				r.Start = s.StartOf(r.End)
			}
		}
	case Session:
		var span store.Span
		if r.Key, span, ok = store.ParseSessionKey(key); ok {
			r.Start, r.End = span.Start, span.End
		}
	case Versioned:
		if r.Key, r.Start, ok = store.ParseVersionKey(key); ok && b != nil {
			b, r.Deleted = store.VersionValue(b)
		}
	case List:
		var index uint64
		if r.Key, index, ok = store.ParseListKey(key); !ok {
			return r, false, nil
		}
		if r.Start = int64(index); b != nil {
			b = store.ListValue(b)
		}
	default:
		ok = false
	}
	if !ok {
		return r, false, failed(s, errRow)
	}
	if s.Panes && b != nil {
		if b, ok = store.PaneValue(b); !ok {
			return r, false, failed(s, errRow)
		}
	}
	r.Key = append([]byte{}, r.Key...)
	if !r.Deleted {
		r.Value = append([]byte{}, b...)
	}
	return r, true, nil
}
