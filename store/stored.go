package store

import (
	"fmt"
	"slices"
)

// Stored is a store whose rows a DB holds, as the DB itself says. It is for whoever looks at a DB without the app that has
// written it.
type Stored struct {
	// Number begins the keys of its rows.
	Number uint16
	// Spec is what was declared and is kept in the DB.
	Spec Spec
	// Internal says that the rows belong to another store: they are its due times.
	Internal bool
}

// ReadStores returns the stores of a DB, ascending by number. A DB that was never written has none. The error wraps
// ErrCorrupt if the list cannot be read.
func ReadStores(db DB) ([]Stored, error) {
	_, c, _, err := readMeta(db)
	if err != nil {
		return nil, err
	}
	out := make([]Stored, len(c.stores))
	for i, s := range c.stores {
		out[i] = Stored{s.number, s.spec, s.spec.Kind == due}
	}
	slices.SortFunc(out, func(a, b Stored) int { return int(a.Number) - int(b.Number) })
	return out, nil
}

// Scan iterates over the rows of the store in a DB whose keys begin with prefix. Keys are those of the store, without its
// number; values begin with their timestamp in ms, 8 bytes big-endian.
func (s Stored) Scan(db DB, prefix []byte) (Iterator, error) {
	lo := appendKey(nil, s.Number, prefix)
	it, err := db.Scan(lo, Successor(lo))
	if err != nil {
		return nil, fmt.Errorf("store: %s: scan: %w", s.Spec.ID, err)
	}
	return storedRows{it}, nil
}

// storedRows takes the number off the keys.
type storedRows struct{ Iterator }

func (r storedRows) Key() []byte { return r.Iterator.Key()[numberLen:] }
