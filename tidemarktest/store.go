package tidemarktest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// StoreReader reads the committed rows of one store: of an aggregate, a table, or a processor's own.
type StoreReader[K, V any] struct {
	d  *Driver
	id string
	c  topology.Codecs[K, V]
}

// StoreRow is one row of a store.
type StoreRow[K, V any] struct {
	Key       K
	Value     V
	Time      time.Time // of the last record that changed it
	Partition int
	// Window says which window or session the row is of; nil for other stores.
	Window *window.Bounds
}

// Store returns a reader of a store by its id. Its codecs are those of the types unless with says otherwise.
func Store[K, V any](d *Driver, id string, with ...topology.Codecs[K, V]) *StoreReader[K, V] {
	d.helper()
	c, err := codecs(with)
	if err != nil {
		d.fatal(fmt.Errorf("tidemarktest: store %s: %w", id, err))
	}
	if s, _ := d.c.storeOf(id); s == nil {
		d.fatal(fmt.Errorf("tidemarktest: the topology has no store %q", id))
	}
	return &StoreReader[K, V]{d, id, c}
}

// Get returns the value of a key and whether there is one. For windows use Window or Rows.
func (r *StoreReader[K, V]) Get(k K) (V, bool) {
	r.d.helper()
	return r.find(k, func(row *storeRow) bool { return row.bounds == nil })
}

// Window returns the value of a key in the window or session that starts at start, and whether there is one.
func (r *StoreReader[K, V]) Window(k K, start time.Time) (V, bool) {
	r.d.helper()
	return r.find(k, func(row *storeRow) bool { return row.bounds != nil && row.bounds.Start == start.UnixMilli() })
}

func (r *StoreReader[K, V]) find(k K, is func(*storeRow) bool) (v V, ok bool) {
	r.d.helper()
	key, err := r.c.Key.Append(nil, k)
	r.d.check(err)
	rows, err := r.d.c.rows(r.id)
	r.d.check(err)
	for i := range rows {
		if row := &rows[i]; bytes.Equal(row.key, key) && is(row) {
			v, err := r.c.Value.Decode(row.value)
			r.d.check(err)
			return v, true
		}
	}
	return v, false
}

// Rows returns all rows, in the order of keys and windows.
func (r *StoreReader[K, V]) Rows() []StoreRow[K, V] {
	r.d.helper()
	rows, err := r.d.c.rows(r.id)
	r.d.check(err)
	list := make([]StoreRow[K, V], len(rows))
	for i, row := range rows {
		o := &list[i]
		o.Time, o.Partition, o.Window = time.UnixMilli(row.time).UTC(), row.partition, row.bounds
		o.Key, err = r.c.Key.Decode(row.key)
		r.d.check(err)
		o.Value, err = r.c.Value.Decode(row.value)
		r.d.check(err)
	}
	return list
}

// storeRow is a row as bytes.
type storeRow struct {
	key, value []byte
	bounds     *window.Bounds
	time       int64
	partition  int
}

// storeOf finds a store by its id.
func (c *cluster) storeOf(id string) (*sub, int) {
	for _, s := range c.subs {
		for i, spec := range s.Stores {
			if spec.ID == id {
				return s, i
			}
		}
	}
	return nil, 0
}

// rows reads the committed rows of a store. They are written to the databases first, where they lie alone.
func (c *cluster) rows(id string) ([]storeRow, error) {
	s, n := c.storeOf(id)
	if s == nil {
		return nil, fmt.Errorf("tidemarktest: the topology has no store %q", id)
	}
	var list []storeRow
	for _, inst := range c.instances {
		for _, t := range inst.tasks {
			if t.sub != s {
				continue
			}
			if err := t.state.Persist(c.now, true); err != nil {
				return nil, err
			}
			state, err := store.Open(inst.disks[t.id], s.Stores, store.Options{})
			if err != nil {
				return nil, err
			}
			rows, err := readRows(state, s.Stores[n])
			if err != nil {
				return nil, fmt.Errorf("tidemarktest: store %s: %w", id, err)
			}
			for i := range rows {
				rows[i].partition = int(t.id.Partition)
			}
			list = append(list, rows...)
		}
	}
	slices.SortStableFunc(list, func(a, b storeRow) int {
		if c := bytes.Compare(a.key, b.key); c != 0 || a.bounds == nil || b.bounds == nil {
			return c
		}
		return cmp.Or(cmp.Compare(a.bounds.Start, b.bounds.Start), cmp.Compare(a.bounds.End, b.bounds.End))
	})
	return list, nil
}

func readRows(state *store.State, spec store.Spec) ([]storeRow, error) {
	view, err := store.ViewOf[[]byte](state, spec.ID, codec.Bytes())
	if err != nil {
		return nil, err
	}
	cur, err := view.Scan(nil, nil)
	if err != nil {
		return nil, err
	}
	var list []storeRow
	for cur.Next() {
		v, err := cur.Value()
		if err != nil {
			return nil, errors.Join(err, cur.Close())
		}
		row, err := rowOf(spec, bytes.Clone(cur.Key()), bytes.Clone(v))
		if err != nil {
			return nil, errors.Join(err, cur.Close())
		}
		row.time = cur.Time()
		list = append(list, row)
	}
	return list, errors.Join(cur.Err(), cur.Close())
}

var errRow = errors.New("a row that cannot be read")

// rowOf takes a local row apart.
func rowOf(spec store.Spec, key, value []byte) (storeRow, error) {
	row := storeRow{key: key, value: value}
	if spec.Layout != nil {
		if _, v, _ := spec.Layout.Export(nil, key, value); v != nil {
			row.value = v
		}
	}
	switch spec.Kind {
	case store.Window:
		end, user, ok := store.ParseWindowKey(key)
		if !ok {
			return row, errRow
		}
		row.key, row.bounds = user, &window.Bounds{End: end}
		if spec.Layout != nil {
			ck, _, _ := spec.Layout.Export(nil, key, value)
			if len(ck) < 12 {
				return row, errRow
			}
			row.bounds.Start = int64(binary.BigEndian.Uint64(ck[len(ck)-12:]))
		}
	case store.Session:
		user, s, ok := store.ParseSessionKey(key)
		if !ok {
			return row, errRow
		}
		row.key, row.bounds = user, (*window.Bounds)(&s)
	}
	return row, nil
}
