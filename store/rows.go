package store

import (
	"bytes"
	"errors"
)

// Rows calls f for every committed row of the store with that index in the specs, in no particular order: the
// committed layer over the DB, without what views hold. The row is the timestamp, 8 bytes big-endian, and the value.
// Both slices are valid until f returns. It is for checks.
func (s *State) Rows(store int, f func(key, row []byte)) (err error) {
	number := s.numbers[store]
	it, err := s.db.Scan(appendKey(nil, number, nil), appendKey(nil, number+1, nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	floor := s.committedFloors[store]
	layers := make(map[string][]byte) // nil: deleted
	for _, g := range s.committedGens.list {
		if g == nil || g.no <= s.persisted {
			continue
		}
		for i := g.start[store]; i < g.start[store+1]; i++ {
			e := &g.entries[i]
			if bytes.Compare(g.key(e), floor) < 0 {
				continue
			}
			layers[string(g.key(e))] = g.dbValue(e)
		}
	}
	for it.Next() {
		key := it.Key()[numberLen:]
		if bytes.Compare(key, floor) < 0 {
			continue
		}
		row, ok := layers[string(key)]
		if !ok {
			row = it.Value()
		}
		delete(layers, string(key))
		if row != nil {
			f(key, row)
		}
	}
	for key, row := range layers {
		if row != nil {
			f([]byte(key), row)
		}
	}
	return it.Err()
}
