package store

import "encoding/binary"

// Batch is a sequence of operations that Apply carries out together. The zero value is empty. It copies what it is
// given.
type Batch struct {
	ops []byte // per operation: key length, value length + 1 (0 deletes), key, value
	n   int
}

// Set sets the value of key.
func (b *Batch) Set(key, value []byte) {
	b.ops = binary.AppendUvarint(b.ops, uint64(len(key)))
	b.ops = binary.AppendUvarint(b.ops, uint64(len(value))+1)
	b.ops = append(append(b.ops, key...), value...)
	b.n++
}

// Delete removes the row of key, if there is one.
func (b *Batch) Delete(key []byte) {
	b.ops = binary.AppendUvarint(b.ops, uint64(len(key)))
	b.ops = append(append(b.ops, 0), key...)
	b.n++
}

// Len returns the number of operations, Size their bytes.
func (b *Batch) Len() int { return b.n }

// Size returns the bytes the batch holds.
func (b *Batch) Size() int { return len(b.ops) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.ops, b.n = b.ops[:0], 0 }

// All calls fn for every operation in order; a nil value deletes. The slices are valid as long as the batch does not
// change.
func (b *Batch) All(fn func(key, value []byte)) {
	for ops := b.ops; len(ops) > 0; {
		k, n := binary.Uvarint(ops)
		ops = ops[n:]
		v, n := binary.Uvarint(ops)
		ops = ops[n:]
		key := ops[:k:k]
		ops = ops[k:]
		if v == 0 {
			fn(key, nil)
			continue
		}
		fn(key, ops[:v-1:v-1])
		ops = ops[v-1:]
	}
}
