package processor

// slabSize is the size of a chunk that output bytes are encoded into. It is above any usual record, so that a chunk
// serves hundreds, and small enough that one late record does not pin much.
const slabSize = 64 << 10

// slab hands out room for bytes that leave the task. A chunk is written once from front to back and is garbage when
// the last record in it is; nothing in it is ever overwritten.
type slab struct {
	free []byte // unused rest of the chunk: length 0, capacity what is left
	hint int    // size of the largest recent encoding
}

// room returns an empty slice to append one encoding to, with space for a usual one.
func (s *slab) room() []byte {
	if cap(s.free) <= s.hint {
		s.free = make([]byte, 0, max(slabSize, 4*s.hint))
	}
	return s.free
}

// take keeps what was appended to room and returns it with its capacity cut. An encoding that outgrew the chunk has
// memory of its own, made by append; the chunk stays for smaller ones.
func (s *slab) take(b []byte) []byte {
	n := len(b)
	if n == 0 {
		return []byte{} // empty is not null, whatever the codec made of it
	}
	if n > s.hint && n <= slabSize/16 {
		s.hint = n
	}
	if n <= cap(s.free) {
		s.free = s.free[n:n]
	}
	return b[:n:n]
}

// copy returns a copy of b in the slab.
func (s *slab) copy(b []byte) []byte {
	if len(b) > cap(s.free) {
		s.free = make([]byte, 0, max(slabSize, len(b)))
	}
	return s.take(append(s.free, b...))
}
