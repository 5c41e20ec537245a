package snapshot

import (
	"crypto/sha256"
	"sync"
)

// Memo remembers the sums of table files, so that each is hashed once. It is good for one open database: within it a
// file keeps its content, but a database opened from the same beginning gives the same names to other contents. It must
// therefore not outlive the database and is never written down. The zero Memo is empty; a nil one remembers nothing.
type Memo struct {
	mu   sync.Mutex
	sums map[string]memoEntry
}

type memoEntry struct {
	size int64
	sum  [sha256.Size]byte
}

func (m *Memo) get(name string, size int64) ([sha256.Size]byte, bool) {
	if m == nil {
		return [sha256.Size]byte{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.sums[name]
	return e.sum, ok && e.size == size
}

func (m *Memo) put(name string, size int64, sum [sha256.Size]byte) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sums == nil {
		m.sums = make(map[string]memoEntry)
	}
	m.sums[name] = memoEntry{size, sum}
}

// keep forgets files that the database no longer has.
func (m *Memo) keep(names map[string]bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.sums {
		if !names[name] {
			delete(m.sums, name)
		}
	}
}
