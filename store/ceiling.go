package store

import (
	"bytes"
	"errors"
	"fmt"
)

// ceiling is what is known about the upper end of a store in the DB: it has no row at or above key that the view does
// not hold. A row that is not in the view is then known to be absent without asking the DB: in a store that began empty
// until rows leave the view, and for new windows always.
type ceiling struct {
	any bool // nothing is known
	key []byte
}

// below reports whether key is above everything the DB may hold.
func (c *ceiling) below(key []byte) bool { return !c.any && bytes.Compare(c.key, key) <= 0 }

// nothing reports whether the DB holds no row at all that the view does not hold.
func (c *ceiling) nothing() bool { return !c.any && len(c.key) == 0 }

// raise is told of a row that has left the view.
func (c *ceiling) raise(key []byte) {
	if c.below(key) {
		c.key = append(append(c.key[:0], key...), 0)
	}
}

// readCeilings looks for the upper ends of all stores.
func readCeilings(db DB, specs []Spec, numbers []uint16, floors [][]byte) ([]ceiling, error) {
	out := make([]ceiling, len(specs))
	for i := range specs {
		n := 0
		switch specs[i].Kind {
		case Window:
			n = 8
		case Dedup:
			n = 4
		}
		last, err := lastPrefix(db, numbers[i], floors[i], n, nil)
		if err != nil {
			return nil, fmt.Errorf("store: open: %w", err)
		}
		switch {
		case last == nil:
		case n == 0:
			out[i].any = true
		default:
			if out[i].key = Successor(last); out[i].key == nil {
				out[i].any = true
			}
		}
	}
	return out, nil
}

// lastPrefix visits the prefixes of n bytes of a store's keys in ascending order and returns the last one, nil if there
// are no rows. A prefix with many rows is left by a new scan behind it, one with few by going on.
func lastPrefix(db DB, number uint16, floor []byte, n int, visit func(prefix []byte)) (last []byte, err error) {
	const few = 32
	lo, hi := appendKey(nil, number, floor), appendKey(nil, number+1, nil)
	for lo != nil {
		it, err := db.Scan(lo, hi)
		if err != nil {
			return nil, err
		}
		lo = nil
		for rows := 0; it.Next(); rows++ {
			key := it.Key()[numberLen:]
			prefix := key[:min(n, len(key))]
			if last == nil || !bytes.Equal(prefix, last) {
				last = append(make([]byte, 0, n), prefix...)
				rows = 0
				if visit != nil {
					visit(last)
				}
			} else if rows > few {
				if next := Successor(last); next != nil {
					lo = appendKey(nil, number, next)
				}
				break
			}
			if n == 0 {
				break
			}
		}
		if err := errors.Join(it.Err(), it.Close()); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// Successor returns the first key behind all keys that begin with prefix, nil if there is none.
func Successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			out := bytes.Clone(prefix[:i+1])
			out[i]++
			return out
		}
	}
	return nil
}
