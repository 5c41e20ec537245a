package query

import "github.com/tidemark/tidemark/store"

// Range is the keys k with From <= k < To, in the order of their bytes. A nil To is open.
type Range struct{ From, To []byte }

// Prefix returns the range of the keys that begin with p.
func Prefix(p []byte) Range { return Range{From: p, To: store.Successor(p)} }

// Contains says whether a key lies in the range.
func (r Range) Contains(key []byte) bool {
	return string(r.From) <= string(key) && (r.To == nil || string(key) < string(r.To))
}

// Row is one row of a store. The bytes stay valid.
type Row struct {
	// Key is the user's key, encoded.
	Key []byte
	// Start and End are the bounds of the window or session in ms: Start <= t < End. For a versioned store Start is since
	// when the value is valid. For a list Start is the index of the value. Else 0.
	Start, End int64
	// Value is the encoded value, nil if the row was deleted (in changes) or a version says that there is none.
	Value []byte
	// Time is the timestamp of the row in ms.
	Time int64
	// Deleted says that the row is gone.
	Deleted bool
}
