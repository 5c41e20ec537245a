package store

// arena holds keys that are too long for their row. Freed bytes stay until the owner copies the live keys into a new one.
type arena struct {
	chunks [][]byte
	used   int64 // bytes put since the start
	live   int64 // of them not freed
}

const arenaChunk = 32 << 10

// put copies b and returns its position.
func (a *arena) put(b []byte) uint64 {
	last := len(a.chunks) - 1
	if last < 0 || cap(a.chunks[last])-len(a.chunks[last]) < len(b) {
		a.chunks = append(a.chunks, make([]byte, 0, max(arenaChunk, len(b))))
		last++
	}
	off := len(a.chunks[last])
	a.chunks[last] = append(a.chunks[last], b...)
	a.used += int64(len(b))
	a.live += int64(len(b))
	return uint64(last)<<32 | uint64(off)
}

func (a *arena) get(pos uint64, n uint32) []byte {
	off := uint32(pos)
	return a.chunks[pos>>32][off : off+n : off+n]
}

// free gives n bytes back.
func (a *arena) free(n uint32) { a.live -= int64(n) }

// wasteful reports whether it is time to copy.
func (a *arena) wasteful() bool { return a.used > 2*a.live+4*arenaChunk }
