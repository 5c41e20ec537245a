package store

import (
	"errors"
	"fmt"
	"slices"
)

// Drop removes stores with all their rows from a DB that no State has open, in one step: stores that the topology no
// longer has, or whose schema has changed. Open takes a store of that name for a new one afterwards, see State.Added.
// IDs the DB does not know are no error.
func Drop(db DB, ids ...string) error {
	progress, c, fresh, err := readMeta(db)
	if err != nil || fresh {
		return err
	}
	r := &dropRun{db: db}
	c.stores = slices.DeleteFunc(c.stores, func(s numbered) bool {
		if !slices.Contains(ids, s.spec.ID) && !slices.ContainsFunc(ids, func(id string) bool { return dueID(id) == s.spec.ID }) {
			return false
		}
		r.numbers = append(r.numbers, s.number)
		return true
	})
	if len(r.numbers) == 0 {
		return nil
	}
	slices.Sort(r.numbers)
	r.meta = []meta{{progressKey, progress}, {storesKey, c.append(nil)}}
	err = db.Load(r)
	if err = errors.Join(err, r.close()); err != nil {
		return fmt.Errorf("store: drop: %w", err)
	}
	return nil
}

// Stores lists what a DB holds, in the order of their creation, with the schemas their rows were written with.
func Stores(db DB) ([]Spec, error) {
	_, c, _, err := readMeta(db)
	if err != nil {
		return nil, err
	}
	var specs []Spec
	for _, s := range c.stores {
		if s.spec.Kind != due {
			specs = append(specs, s.spec)
		}
	}
	return specs, nil
}

// dropRun is a run of meta rows and of deletes for every row of some stores. It reads the rows as it goes.
type dropRun struct {
	db      DB
	meta    []meta
	numbers []uint16 // still to come, ascending
	it      Iterator // of the present store
	err     error

	key, value []byte
}

func (r *dropRun) Key() []byte   { return r.key }
func (r *dropRun) Value() []byte { return r.value }
func (r *dropRun) End() []byte   { return nil }

func (r *dropRun) Next() bool {
	if len(r.meta) > 0 {
		r.key, r.value = []byte(r.meta[0].key), r.meta[0].value
		r.meta = r.meta[1:]
		return true
	}
	for r.err == nil {
		if r.it != nil && r.it.Next() {
			r.key, r.value = r.it.Key(), nil
			return true
		}
		if r.close(); len(r.numbers) == 0 || r.err != nil {
			break
		}
		n := r.numbers[0]
		r.numbers = r.numbers[1:]
		r.it, r.err = r.db.Scan(appendKey(nil, n, nil), appendKey(nil, n+1, nil))
	}
	return false
}

// close ends the present scan and returns the first error of all.
func (r *dropRun) close() error {
	if r.it != nil {
		r.err = errors.Join(r.err, r.it.Err(), r.it.Close())
		r.it = nil
	}
	return r.err
}
