package pebblestore

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark/tidemark/store"
)

func isCorrupt(err error) bool { return errors.Is(err, store.ErrCorrupt) }

// Get implements store.DB.
func (d *DB) Get(dst, key []byte) ([]byte, bool, error) {
	if err := d.enter(); err != nil {
		return dst, false, d.fail("get", err)
	}
	defer d.leave()
	if len(key) == 0 {
		return d.getEmpty(dst)
	}
	it, err := d.pebble.NewIter(&lookUp)
	if err != nil {
		return dst, false, d.fail("get", err)
	}
	found := it.SeekPrefixGE(key) && bytes.Equal(it.Key(), key)
	if found {
		dst = append(dst, it.Value()...)
	}
	if err := it.Close(); err != nil { // an error of the seek comes back here
		return dst, false, d.fail("get", err)
	}
	return dst, found, nil
}

// getEmpty reads the row with the empty key, which has no prefix to seek by.
func (d *DB) getEmpty(dst []byte) ([]byte, bool, error) {
	value, closer, err := d.pebble.Get(nil)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, d.fail("get", err)
	}
	dst = append(dst, value...)
	if err := closer.Close(); err != nil {
		return dst, false, d.fail("get", err)
	}
	return dst, true, nil
}

// lookUp makes a point read ask the filters of the lowest level, too, where nearly all rows are. Pebble's Get does
// not: every new key of a store that has outgrown its view would load and decompress a block to learn that there is
// no such row.
var lookUp = pebble.IterOptions{UseL6Filters: true}

// Scan implements store.DB.
func (d *DB) Scan(lo, hi []byte) (store.Iterator, error) {
	if err := d.enter(); err != nil {
		return nil, d.fail("scan", err)
	}
	defer d.leave()
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return noRows{}, nil
	}
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, d.fail("scan", err)
	}
	i := &iterator{d: d, it: it}
	if d.lazy != nil && !d.lazy.complete.Load() {
		return d.guard(i), nil
	}
	return i, nil
}

type iterator struct {
	d       *DB
	it      *pebble.Iterator
	started bool
}

func (i *iterator) Next() bool {
	if i.started {
		return i.it.Next()
	}
	i.started = true
	return i.it.First()
}

func (i *iterator) Key() []byte   { return i.it.Key() }
func (i *iterator) Value() []byte { return i.it.Value() }

func (i *iterator) Err() error {
	if err := i.it.Error(); err != nil {
		return i.d.fail("scan", err)
	}
	return nil
}

func (i *iterator) Close() error {
	if err := i.it.Close(); err != nil {
		return i.d.fail("scan", err)
	}
	return nil
}

// noRows is the scan of an empty range.
type noRows struct{}

func (noRows) Next() bool    { return false }
func (noRows) Key() []byte   { return nil }
func (noRows) Value() []byte { return nil }
func (noRows) Err() error    { return nil }
func (noRows) Close() error  { return nil }
