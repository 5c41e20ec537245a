// Package check compares what a system has written with a naive computation over the same seeded input. It must know
// nothing about the system. It has no goroutines.
package check

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/tidemark/tidemark/bench/internal/workload"
)

// Checker takes the records of the output topic, partition by partition in order, and judges at the end.
type Checker interface {
	// Record takes one committed record.
	Record(key, value []byte) error
	// Finish returns the first difference.
	Finish() error
}

// New returns the checker of a workload.
func New(s workload.Spec, n int, seed uint64) (Checker, error) {
	g := workload.NewGen(s, n, seed)
	switch s.Name {
	case "W1":
		return newOnce(g, n), nil
	case "W2", "W2Z":
		c := newCounts(int(s.Keys), workload.KeySize, func(key []byte) uint64 { return workload.ID(key) })
		var r workload.Rec
		for g.Next(&r) {
			c.want[r.ID]++
		}
		return c, nil
	case "W6":
		c := newCounts(workload.Categories, 8, binary.BigEndian.Uint64)
		var r workload.Rec
		for g.Next(&r) {
			c.want[r.Amount%workload.Items%workload.Categories]++
		}
		return c, nil
	}
	if s.Windows() > 0 {
		return newHops(s, n, g), nil
	}
	return nil, fmt.Errorf("check: no checker for %s", s.Name)
}

// once wants every record of W1 exactly once, byte for byte: one bit per position in the input, and a commutative sum
// of hashes.
type once struct {
	seed      maphash.Seed
	pending   []uint64
	n         int64
	missing   int64
	want, got uint64
}

func newOnce(g *workload.Gen, n int) *once {
	c := &once{seed: maphash.MakeSeed(), pending: make([]uint64, n/64+1), n: int64(n)}
	var r workload.Rec
	buf := make([]byte, 0, workload.KeySize+workload.ValueSize)
	for g.Next(&r) {
		if r.Amount&1 != 0 {
			continue
		}
		r.Amount++
		buf = g.AppendValue(workload.AppendKey(buf[:0], r.ID), &r)
		c.want += maphash.Bytes(c.seed, buf)
		c.pending[r.Seq/64] |= 1 << (r.Seq % 64)
		c.missing++
	}
	return c
}

func (c *once) Record(key, value []byte) error {
	if len(key) != workload.KeySize || len(value) != workload.ValueSize {
		return fmt.Errorf("check: record of %d+%d bytes", len(key), len(value))
	}
	seq := workload.Seq(value)
	if seq < 0 || seq >= c.n || c.pending[seq/64]&(1<<(seq%64)) == 0 {
		return fmt.Errorf("check: record %d twice or not expected", seq)
	}
	c.pending[seq/64] &^= 1 << (seq % 64)
	c.missing--
	var buf [workload.KeySize + workload.ValueSize]byte
	copy(buf[copy(buf[:], key):], value)
	c.got += maphash.Bytes(c.seed, buf[:])
	return nil
}

func (c *once) Finish() error {
	if c.missing != 0 {
		return fmt.Errorf("check: %d records missing", c.missing)
	}
	if c.got != c.want {
		return fmt.Errorf("check: all records are there, some differ")
	}
	return nil
}

// counts wants counts that grow per key and end at the truth.
type counts struct {
	want, got []int64
	keySize   int
	id        func(key []byte) uint64
}

func newCounts(keys, keySize int, id func([]byte) uint64) *counts {
	return &counts{make([]int64, keys), make([]int64, keys), keySize, id}
}

func (c *counts) Record(key, value []byte) error {
	if len(key) != c.keySize || len(value) != 8 || c.id(key) >= uint64(len(c.got)) {
		return fmt.Errorf("check: record of %d+%d bytes, key %x", len(key), len(value), key)
	}
	id, v := c.id(key), int64(binary.BigEndian.Uint64(value))
	if v <= c.got[id] {
		return fmt.Errorf("check: key %d went from %d to %d", id, c.got[id], v)
	}
	c.got[id] = v
	return nil
}

func (c *counts) Finish() error {
	for id, want := range c.want {
		if c.got[id] != want {
			return fmt.Errorf("check: key %d has %d, want %d", id, c.got[id], want)
		}
	}
	return nil
}
