package store

import "encoding/binary"

// Rows of some kinds have a due time: a session its end, a timer its time, an expiring row the time until which it is
// good. A second store, which has no changelog, lists them in that order:
//
//	+--------------------------------+------------------------+
//	| due time, 8, sign bit flipped  | key of the row         |      no value
//	+--------------------------------+------------------------+
//
// The list of a store of sessions is derived from its rows when they are written to the DB, see derived.go. Those of
// timers and expiring rows are written like any other store.
//
// The list may hold more than is true, never less: an entry counts only if its row is there and due at that time. So a
// restore adds entries and need not look for those it should remove, and a row may change its time without a look.

// dueID returns the ID of the store of due times. A zero byte is in no ID of a user.
func dueID(id string) string { return id + "\x00due" }

// withDues appends the stores of due times. dues has their indexes, by store, or -1.
func withDues(specs []Spec) (all []Spec, dues []int) {
	all = append(all, specs...)
	for _, s := range specs {
		if !s.Kind.hasDue() {
			dues = append(dues, -1)
			continue
		}
		dues = append(dues, len(all))
		all = append(all, Spec{ID: dueID(s.ID), Kind: due})
	}
	for len(dues) < len(all) {
		dues = append(dues, -1)
	}
	return all, dues
}

// dueTime returns the due time of a row; ok is false if key or value are none of that kind.
func dueTime(kind Kind, key, value []byte) (t int64, ok bool) {
	switch kind {
	case Timers, Expiring:
		if len(value) >= 8 {
			return int64(binary.BigEndian.Uint64(value)), true
		}
	}
	return 0, false
}
