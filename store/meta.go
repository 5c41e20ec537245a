package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Meta rows have keys that begin with a zero byte, rows of stores with the number of the store.
const (
	floorsKey   = "\x00floors"
	progressKey = "\x00progress"
	storesKey   = "\x00stores"
	firstNumber = 0x0100
	lastNumber  = 0xfffe // the number behind it bounds its scans
)

// catalog is the persistent list of the stores of a DB: what the numbers in the row keys mean. A number is not used
// again for another store.
type catalog struct {
	next   uint16 // number of the next store
	stores []numbered
}

type numbered struct {
	spec   Spec
	number uint16
}

const catalogVersion = 1

// append encodes c:
//
//	+------------+---------+-------+-----------------------------------------------------------------+
//	| version, 1 | next, 2 | count | per store: number, 2 | kind, 1 | flags, 1 | id | key | value schema |
//	+------------+---------+-------+-----------------------------------------------------------------+
//
// Count and the lengths before the strings are uvarints; bit 0 of flags says that the store has a changelog.
func (c *catalog) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, catalogVersion), c.next)
	dst = binary.AppendUvarint(dst, uint64(len(c.stores)))
	for _, s := range c.stores {
		dst = binary.BigEndian.AppendUint16(dst, s.number)
		dst = append(dst, byte(s.spec.Kind), 0)
		if s.spec.Changelog {
			dst[len(dst)-1] = 1
		}
		for _, str := range []string{s.spec.ID, s.spec.KeySchema, s.spec.ValueSchema} {
			dst = binary.AppendUvarint(dst, uint64(len(str)))
			dst = append(dst, str...)
		}
	}
	return dst
}

var errCatalog = errors.New("bad list of stores")

func parseCatalog(b []byte) (catalog, error) {
	if len(b) > 0 && b[0] != catalogVersion {
		return catalog{}, fmt.Errorf("%w: its version is %d, this build reads %d", errCatalog, b[0], catalogVersion)
	}
	if len(b) == 0 {
		return catalog{}, errCatalog
	}
	r := reader{b: b[1:]}
	c := catalog{next: binary.BigEndian.Uint16(r.take(2))}
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		var s numbered
		s.number = binary.BigEndian.Uint16(r.take(2))
		head := r.take(2)
		s.spec.Kind, s.spec.Changelog = Kind(head[0]), head[1]&1 != 0
		for _, str := range []*string{&s.spec.ID, &s.spec.KeySchema, &s.spec.ValueSchema} {
			*str = string(r.take(r.uvarint()))
		}
		c.stores = append(c.stores, s)
	}
	if r.bad || len(r.b) > 0 {
		return catalog{}, errCatalog
	}
	return c, nil
}

// reader takes an encoding apart. After a mistake it returns zeroes and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return make([]byte, min(n, 2))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// readMeta reads progress and catalog. fresh says that the DB holds nothing at all.
func readMeta(db DB) (progress []byte, c catalog, fresh bool, err error) {
	progress, hasProgress, err := db.Get([]byte{}, []byte(progressKey))
	if err != nil {
		return nil, c, false, fmt.Errorf("store: read progress: %w", err)
	}
	list, hasList, err := db.Get(nil, []byte(storesKey))
	if err != nil {
		return nil, c, false, fmt.Errorf("store: read stores: %w", err)
	}
	if hasList {
		if c, err = parseCatalog(list); err != nil {
			return nil, c, false, fmt.Errorf("store: read stores: %w: %w", ErrCorrupt, err)
		}
	}
	c.next = max(c.next, firstNumber)
	if hasProgress {
		return progress, c, false, nil
	}
	any, err := hasRows(db, nil, nil)
	if err == nil && any {
		err = ErrPartial
	}
	return nil, c, true, err
}

func hasRows(db DB, lo, hi []byte) (bool, error) {
	it, err := db.Scan(lo, hi)
	if err != nil {
		return false, fmt.Errorf("store: scan: %w", err)
	}
	found := it.Next()
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return false, fmt.Errorf("store: scan: %w", err)
	}
	return found, nil
}

// resolve gives every spec its number and adds the ones that are new to c.
func (c *catalog) resolve(specs []Spec) (numbers []uint16, added []string, err error) {
	for i, want := range specs {
		if want.Kind == 0 {
			want.Kind = KeyValue
		}
		if slices.ContainsFunc(specs[:i], func(s Spec) bool { return s.ID == want.ID }) {
			return nil, nil, fmt.Errorf("store: %s: declared twice", want.ID)
		}
		at := slices.IndexFunc(c.stores, func(s numbered) bool { return s.spec.ID == want.ID })
		if at < 0 {
			if c.next > lastNumber {
				return nil, nil, fmt.Errorf("store: %s: no number left", want.ID)
			}
			at = len(c.stores)
			c.stores = append(c.stores, numbered{want, c.next})
			c.next++
			if want.Kind != due {
				added = append(added, want.ID)
			}
		}
		have := &c.stores[at]
		if s := have.spec; s.Kind != want.Kind || s.KeySchema != want.KeySchema || s.ValueSchema != want.ValueSchema && !slices.Contains(want.Older, s.ValueSchema) {
			return nil, nil, &SchemaError{Have: s, Want: want}
		}
		have.spec.Changelog, have.spec.ValueSchema = want.Changelog, want.ValueSchema
		numbers = append(numbers, have.number)
	}
	return numbers, added, nil
}
