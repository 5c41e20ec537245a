package check

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// Rows are the rows that the workload STATE, or WINDOWS, must have left behind: for every key the last record of the input. They are
// kept as sums, which are compared with those of a database, see Compare.
type Rows struct {
	seed maphash.Seed
	sums []uint64 // by key number, 0: no row
	sum  uint64
	n    int64
	buf  []byte
}

// NewRows returns no rows for so many keys.
func NewRows(keys uint64, seed maphash.Seed) *Rows {
	return &Rows{seed: seed, sums: make([]uint64, keys)}
}

// Fill sets the rows that Load has written.
func (r *Rows) Fill(s workload.Spec, n int, seed uint64) {
	g := workload.NewGen(s, n, seed)
	var rec workload.Rec
	var key, value []byte
	for g.Next(&rec) {
		key, value = workload.AppendKey(key[:0], rec.ID), g.AppendValue(value[:0], &rec)
		r.Set(key, value, rec.Time)
	}
}

// Set replaces the row of a key. It has the form of the database: the number of the first store, the key, and as value the
// time in ms and the value.
func (r *Rows) Set(key, value []byte, ms int64) {
	at, sum := &r.sums[workload.ID(key)], r.Hash(key, value, ms)
	if *at == 0 {
		r.n++
	}
	r.sum += sum - *at
	*at = sum
}

// Hash is the hash of a row.
func (r *Rows) Hash(key, value []byte, ms int64) uint64 {
	b := append(append(r.buf[:0], 1, 0), key...)
	b = append(binary.BigEndian.AppendUint64(b, uint64(ms)), value...)
	r.buf = b
	return maphash.Bytes(r.seed, b)
}

// Remove forgets the row of a key number.
func (r *Rows) Remove(id uint64) {
	if r.sums[id] != 0 {
		r.n--
		r.sum -= r.sums[id]
		r.sums[id] = 0
	}
}

// Compare returns ok, or how so many rows with that sum differ from those there must be.
func (r *Rows) Compare(rows int64, sum uint64) string {
	switch {
	case rows != r.n:
		return fmt.Sprintf("%d rows of %d", rows, r.n)
	case sum != r.sum:
		return "other values"
	}
	return "ok"
}
