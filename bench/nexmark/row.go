package nexmark

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
)

// Row is a record of an output topic.
type Row struct {
	Key   []byte // nil: null
	Time  int64  // the record's timestamp, ms
	Value []byte
}

// Compare orders rows by key, time and value. A null key comes before all others.
func (r Row) Compare(o Row) int {
	if (r.Key == nil) != (o.Key == nil) {
		if r.Key == nil {
			return -1
		}
		return 1
	}
	return cmp.Or(bytes.Compare(r.Key, o.Key), cmp.Compare(r.Time, o.Time), bytes.Compare(r.Value, o.Value))
}

// String shows a row.
func (r Row) String() string {
	if r.Key == nil {
		return fmt.Sprintf("null@%d=%s", r.Time, r.Value)
	}
	return fmt.Sprintf("%x@%d=%s", r.Key, r.Time, r.Value)
}

// Digest stands for a bag of rows: two are equal only if the rows are, but for an accident of 64 bits. Digests of one
// process can be compared. The zero Digest is that of no rows.
type Digest struct {
	Rows int64
	sum  uint64
}

// Add adds a row. All digests that are compared have the same seed.
func (d *Digest) Add(seed maphash.Seed, r Row) {
	var h maphash.Hash
	h.SetSeed(seed)
	var head [17]byte
	if r.Key != nil {
		head[0] = 1
	}
	binary.BigEndian.PutUint64(head[1:], uint64(len(r.Key)))
	binary.BigEndian.PutUint64(head[9:], uint64(r.Time))
	h.Write(head[:])
	h.Write(r.Key)
	h.Write(r.Value)
	d.Rows++
	d.sum += h.Sum64()
}
