package store

import "errors"

// ErrExpired is returned by writes to rows below the floor of their store.
var ErrExpired = errors.New("store: expired")

// Expire raises the floor of the store with that index in the specs: every row below is gone from now on, for reads,
// scans and the changelog, which gets nothing. It belongs to the current generation: Rollback takes it back. A floor that
// is not above the present one does nothing. The rows leave the DB in one step with the next Persist.
func (s *State) Expire(store int, floor []byte) { panic("") }
