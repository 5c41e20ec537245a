package store

import "encoding/binary"

// Batch is a sequence of operations that Apply carries out together. The zero value is empty. It copies what it is
// given.
type Batch struct {
	ops []byte // per operation: key length, code, key, value or end
	n   int
}

// A code is one of these, or the length of the value to set plus opSet.
const (
	opDelete      = iota
	opDeleteRange // followed by the length of the end
	opSet
)

// Set sets the value of key.
func (b *Batch) Set(key, value []byte) {
	b.ops = binary.AppendUvarint(b.ops, uint64(len(key)))
	b.ops = binary.AppendUvarint(b.ops, uint64(len(value))+opSet)
	b.ops = append(append(b.ops, key...), value...)
	b.n++
}

// Delete removes the row of key, if there is one.
func (b *Batch) Delete(key []byte) {
	b.ops = binary.AppendUvarint(b.ops, uint64(len(key)))
	b.ops = append(append(b.ops, opDelete), key...)
	b.n++
}

// DeleteRange removes the rows with lo <= key < hi. Nothing is in an empty range.
func (b *Batch) DeleteRange(lo, hi []byte) {
	b.ops = binary.AppendUvarint(b.ops, uint64(len(lo)))
	b.ops = append(b.ops, opDeleteRange)
	b.ops = binary.AppendUvarint(b.ops, uint64(len(hi)))
	b.ops = append(append(b.ops, lo...), hi...)
	b.n++
}

// Len returns the number of operations, Size their bytes.
func (b *Batch) Len() int { return b.n }

// Size returns the bytes the batch holds.
func (b *Batch) Size() int { return len(b.ops) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.ops, b.n = b.ops[:0], 0 }

// All calls fn for every operation in order. A nil value deletes; an end that is not nil makes that the range from key to
// end. The slices are valid as long as the batch does not change.
func (b *Batch) All(fn func(key, value, end []byte)) {
	ops := b.ops
	length := func() uint64 {
		v, n := binary.Uvarint(ops)
		ops = ops[n:]
		return v
	}
	take := func(n uint64) []byte {
		out := ops[:n:n]
		ops = ops[n:]
		return out
	}
	for len(ops) > 0 {
		k := length()
		switch code := length(); code {
		case opDelete:
			fn(take(k), nil, nil)
		case opDeleteRange:
			n := length()
			lo := take(k)
			fn(lo, nil, take(n))
		default:
			key := take(k)
			fn(key, take(code-opSet), nil)
		}
	}
}
