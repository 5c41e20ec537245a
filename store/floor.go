package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrExpired is returned by writes to rows below the floor of their store.
var ErrExpired = errors.New("store: expired")

// Expire raises the floor of the store with that index in the specs: every row below is gone from now on, for reads,
// scans and the changelog, which gets nothing. It belongs to the current generation: Rollback takes it back. A floor that
// is not above the present one does nothing. The rows leave the DB in one step with the next Persist.
//
// The floor is kept in the DB, but not in the changelog: what a restore replays may hold expired rows again, until the
// caller expires them for the time that is restored.
func (s *State) Expire(store int, floor []byte) {
	if bytes.Compare(floor, s.floors[store]) <= 0 {
		return
	}
	s.floors = slices.Clone(s.floors)
	s.floors[store] = bytes.Clone(floor)
	if v := s.views[store]; v != nil {
		v.raise(s.floors[store])
	}
}

// Floor returns the present floor of the store with that index in the specs, nil if there is none.
func (s *State) Floor(store int) []byte { return s.floors[store] }

const floorsVersion = 1

// appendFloors encodes the floors of stores:
//
//	+------------+------------------------------------------------+
//	| version, 1 | per store with a floor: number, 2 | len | floor |      len is a uvarint
//	+------------+------------------------------------------------+
func appendFloors(dst []byte, numbers []uint16, floors [][]byte) []byte {
	dst = append(dst, floorsVersion)
	for i, f := range floors {
		if len(f) > 0 {
			dst = binary.BigEndian.AppendUint16(dst, numbers[i])
			dst = binary.AppendUvarint(dst, uint64(len(f)))
			dst = append(dst, f...)
		}
	}
	return dst
}

func hasFloors(floors [][]byte) bool {
	return slices.ContainsFunc(floors, func(f []byte) bool { return len(f) > 0 })
}

// readFloors returns the floors a DB holds, by store.
func readFloors(db DB, numbers []uint16) ([][]byte, error) {
	floors := make([][]byte, len(numbers))
	b, ok, err := db.Get(nil, []byte(floorsKey))
	if err != nil {
		return nil, fmt.Errorf("store: read floors: %w", err)
	}
	if !ok {
		return floors, nil
	}
	if len(b) == 0 || b[0] != floorsVersion {
		return nil, fmt.Errorf("store: read floors: %w: bad version", ErrCorrupt)
	}
	r := reader{b: b[1:]}
	for len(r.b) > 0 {
		number := binary.BigEndian.Uint16(r.take(2))
		floor := r.take(r.uvarint())
		if i := slices.Index(numbers, number); i >= 0 {
			floors[i] = floor
		}
	}
	if r.bad {
		return nil, fmt.Errorf("store: read floors: %w: cut short", ErrCorrupt)
	}
	return floors, nil
}

// raise implements viewer. Rows below the floor leave as the clock comes by, dirty ones when they are sealed.
func (v *View[V]) raise(floor []byte) { v.floor = floor }

// expired reports whether key is below the floor.
func (v *View[V]) expired(key []byte) bool {
	return len(v.floor) > 0 && bytes.Compare(key, v.floor) < 0
}

// expiredForGood reports whether no Rollback can bring key back.
func (v *View[V]) expiredForGood(key []byte) bool {
	f := v.s.committedFloors[v.store]
	return len(f) > 0 && bytes.Compare(key, f) < 0
}
