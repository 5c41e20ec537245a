package changelog

import (
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// buffers is the memory of one decoded answer, used again for the next one. Records
// and decompressed bytes are valid until reset. One goroutine at a time uses it.
//
// kgo's own way of recycling counts down once per record and clears every buffer; an
// answer is dropped as a whole, so neither is needed here.
type buffers struct {
	decompressor kgo.Decompressor

	records  [][]kgo.Record
	lentRecs [][]kgo.Record
	bytes    [][]byte
	lent     [][]byte
	offered  []byte // handed to the decompressor, which may return another slice
}

func newBuffers() *buffers {
	b := &buffers{}
	b.decompressor = kgo.DefaultDecompressor(b)
	return b
}

// reset takes everything back that was lent since the last reset.
func (b *buffers) reset() {
	b.records = append(b.records, b.lentRecs...)
	b.bytes = append(b.bytes, b.lent...)
	b.lentRecs = b.lentRecs[:0]
	b.lent = b.lent[:0]
}

// drop lets go of all memory.
func (b *buffers) drop() {
	b.records, b.lentRecs, b.bytes, b.lent, b.offered = nil, nil, nil, nil, nil
}

// GetRecords implements kgo.PoolRecords.
func (b *buffers) GetRecords(n int) []kgo.Record {
	var recs []kgo.Record
	b.records, recs = take(b.records, n)
	b.lentRecs = append(b.lentRecs, recs)
	return recs
}

// PutRecords implements kgo.PoolRecords. What was lent comes back with reset.
func (b *buffers) PutRecords([]kgo.Record) {}

// GetDecompressBytes implements kgo.PoolDecompressBytes. The guess for a buffer that
// is too small costs one allocation; the buffer that comes out of it is kept.
func (b *buffers) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	b.bytes, b.offered = take(b.bytes, 3*len(compressed))
	return b.offered
}

// PutDecompressBytes implements kgo.PoolDecompressBytes. What was lent comes back
// with reset.
func (b *buffers) PutDecompressBytes([]byte) {}

// Decompress implements kgo.Decompressor and notes which buffer the bytes are in.
func (b *buffers) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil
	}
	out, err := b.decompressor.Decompress(src, codec)
	if cap(b.offered) > 0 && unsafe.SliceData(out) != unsafe.SliceData(b.offered) {
		b.bytes = append(b.bytes, b.offered)
	}
	b.offered = nil
	if err == nil && cap(out) > 0 {
		b.lent = append(b.lent, out)
	}
	return out, err
}

// take removes the smallest slice that holds n elements from list; without one it
// removes the smallest of all, which makes room for the larger that replaces it.
func take[E any](list [][]E, n int) (rest [][]E, got []E) {
	best := -1
	for i := range list {
		switch {
		case best < 0:
			best = i
		case cap(list[i]) >= n && (cap(list[best]) < n || cap(list[i]) < cap(list[best])),
			cap(list[i]) < n && cap(list[best]) < n && cap(list[i]) < cap(list[best]):
			best = i
		}
	}
	if best >= 0 {
		got = list[best]
		list[best] = list[len(list)-1]
		list[len(list)-1] = nil
		list = list[:len(list)-1]
	}
	if cap(got) < n {
		got = make([]E, 0, n)
	}
	return list, got[:0]
}
