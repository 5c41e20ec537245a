package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Cursor visits rows in order. It must be closed before the generation is sealed or rolled back.
//
// It merges sorted sources, newest first: the dirty rows of the current generation, the sealed generation, the runs of
// the two layers, the DB. The first source that has a key decides.
type Cursor[V any] struct {
	v       *View[V]
	sources []source[V]
	at      int // source of the present row, -1 before the first row
	strip   int // leading bytes of the keys that the caller does not see
	key     []byte
	err     error
}

// source is one sorted sequence: rows of the view, positions in generations, or an iterator of the DB.
type source[V any] struct {
	rows []uint32
	refs []uint64
	it   Iterator
	gens *gens
	key  []byte // of the head; nil: exhausted
}

// Scan returns a cursor over the present rows with lo <= key < hi in ascending order of their encoded keys; a nil hi
// means up to the last row. It sees all writes made before the call; of a row written during the scan it may show
// either state.
func (v *View[V]) Scan(lo, hi []byte) (*Cursor[V], error) {
	c := &Cursor[V]{v: v, at: -1}
	if v.expired(lo) {
		lo = v.floor
	}
	v.sortDirty()
	rowKey := func(i uint32) []byte { return v.key(v.row(i)) }
	for _, run := range v.dirtyRuns {
		c.sources = append(c.sources, source[V]{rows: cutRun(run, lo, hi, rowKey)})
	}
	if err := v.scanCommitted(c, lo, hi); err != nil {
		return nil, err
	}
	return c, nil
}

// scanCommitted adds everything but the dirty rows of the current generation to a cursor.
func (v *View[V]) scanCommitted(c *Cursor[V], lo, hi []byte) error {
	s := v.s
	if g := s.sealed; g != nil {
		if v.sealedRun == nil {
			v.sealedRun = s.sorted(g, v.store)
		}
		one := &gens{base: g.no, list: []*gen{g}}
		c.sources = append(c.sources, source[V]{refs: cutRun(v.sealedRun, lo, hi, one.key), gens: one})
	}
	return v.scanLayers(c, lo, hi)
}

// scanLayers adds the committed layers and the DB to a cursor.
func (v *View[V]) scanLayers(c *Cursor[V], lo, hi []byte) error {
	s := v.s
	for _, l := range [...]struct {
		*layer
		last uint32
	}{{s.active, s.committed}, {s.frozen, s.frozenTo}} {
		if l.layer == nil {
			continue
		}
		p := &l.parts[v.store]
		p.sort(s, v.store, l.last)
		for _, run := range slices.Backward(p.runs) {
			c.sources = append(c.sources, source[V]{refs: cutRun(run, lo, hi, s.committedGens.key), gens: &s.committedGens})
		}
	}
	return v.scanDB(c, lo, hi)
}

// scanDB adds the last source, the DB, and makes the cursor ready.
func (v *View[V]) scanDB(c *Cursor[V], lo, hi []byte) error {
	number := v.s.numbers[v.store]
	end := appendKey(nil, number+1, nil)
	if hi != nil {
		end = appendKey(nil, number, hi)
	}
	it, err := v.s.db.Scan(appendKey(nil, number, lo), end)
	if err != nil {
		return fmt.Errorf("store: %s: scan: %w", v.id(), err)
	}
	c.sources = append(c.sources, source[V]{it: it})
	for i := range c.sources {
		c.head(&c.sources[i])
	}
	return nil
}

// sortDirty brings dirtyRuns up to date. As in part.sort, runs of like size are merged.
func (v *View[V]) sortDirty() {
	if v.dirtySeen == len(v.dirty) {
		return
	}
	key := func(i uint32) []byte { return v.key(v.row(i)) }
	run := v.sortRows(v.dirty[v.dirtySeen:])
	v.dirtySeen = len(v.dirty)
	v.dirtyRuns = append(v.dirtyRuns, run)
	for n := len(v.dirtyRuns); n > 1 && len(v.dirtyRuns[n-2]) < 2*len(v.dirtyRuns[n-1]); n = len(v.dirtyRuns) {
		v.dirtyRuns = append(v.dirtyRuns[:n-2], mergeRuns(v.dirtyRuns[n-2], v.dirtyRuns[n-1], key, false))
	}
}

// head sets the key of a source to its present head.
func (c *Cursor[V]) head(s *source[V]) {
	switch {
	case s.it != nil:
		s.key = nil
		if s.it.Next() {
			s.key = s.it.Key()[numberLen:]
		} else if err := s.it.Err(); err != nil && c.err == nil {
			c.err = fmt.Errorf("store: %s: scan: %w", c.v.id(), err)
		}
	case len(s.rows) > 0:
		s.key = c.v.key(c.v.row(s.rows[0]))
	case len(s.refs) > 0:
		s.key = s.gens.key(s.refs[0])
	default:
		s.key = nil
	}
}

// Next moves to the next row and reports whether there is one.
func (c *Cursor[V]) Next() bool {
	for c.err == nil {
		c.advance()
		c.at = -1
		for i := range c.sources {
			if k := c.sources[i].key; k != nil && (c.at < 0 || bytes.Compare(k, c.key) < 0) {
				c.at, c.key = i, k
			}
		}
		if c.at < 0 || c.err != nil {
			return false
		}
		if c.present() {
			return true
		}
	}
	return false
}

// advance moves all sources beyond the present key. The source the key belongs to comes last, for the bytes of the key
// may be its own.
func (c *Cursor[V]) advance() {
	if c.at < 0 {
		return
	}
	for i := range c.sources {
		if s := &c.sources[i]; i != c.at && s.key != nil && bytes.Equal(s.key, c.key) {
			c.pop(s)
		}
	}
	c.pop(&c.sources[c.at])
}

func (c *Cursor[V]) pop(s *source[V]) {
	switch {
	case len(s.rows) > 0:
		s.rows = s.rows[1:]
	case len(s.refs) > 0:
		s.refs = s.refs[1:]
	}
	c.head(s)
}

func (c *Cursor[V]) present() bool {
	switch s := &c.sources[c.at]; {
	case s.it != nil:
		return true
	case s.gens != nil:
		return s.gens.value(s.refs[0]) != nil
	default:
		return c.v.row(s.rows[0]).Present
	}
}

// encoded returns the row of the DB form, ok false if the present row is one of the view.
func (c *Cursor[V]) encoded() (row []byte, ok bool) {
	switch s := &c.sources[c.at]; {
	case s.it != nil:
		return s.it.Value(), true
	case s.gens != nil:
		return s.gens.value(s.refs[0]), true
	}
	return nil, false
}

// Key returns the encoded key, valid until the next call of Next or Close.
func (c *Cursor[V]) Key() []byte { return c.key[c.strip:] }

// Value returns the decoded value; it stays valid.
func (c *Cursor[V]) Value() (V, error) {
	row, ok := c.encoded()
	if !ok {
		return c.v.row(c.sources[c.at].rows[0]).Value, nil
	}
	if len(row) < timeLen {
		var zero V
		return zero, fmt.Errorf("store: %s: row of %d bytes: %w", c.v.id(), len(row), ErrCorrupt)
	}
	_, b := splitRow(row)
	return c.v.decode(b)
}

// Time returns the timestamp of the row, in ms since 1970.
func (c *Cursor[V]) Time() int64 {
	row, ok := c.encoded()
	if !ok {
		return c.v.row(c.sources[c.at].rows[0]).Time
	}
	if len(row) < timeLen {
		return 0
	}
	time, _ := splitRow(row)
	return time
}

// Err returns the error that ended the scan, if one did.
func (c *Cursor[V]) Err() error { return c.err }

// Close ends the scan and returns its error.
func (c *Cursor[V]) Close() error {
	var err error
	if n := len(c.sources); n > 0 && c.sources[n-1].it != nil {
		err = c.sources[n-1].it.Close()
	}
	c.sources, c.at = nil, -1
	return errors.Join(c.err, err)
}
