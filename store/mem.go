package store

import (
	"bytes"
	"slices"
	"sync"
)

// NewMem returns an empty DB in memory: for tests, and for state that need not outlive the process.
func NewMem() DB { return new(memDB) }

// memDB keeps its rows in a sorted slice that is never changed in place: every write builds a new one, so a scan simply
// keeps the slice it began with. A write is linear in the rows it holds; writes come in large runs.
type memDB struct {
	mu     sync.Mutex
	rows   []memRow // sorted by key
	closed bool
}

type memRow struct{ key, value []byte }

func (m *memDB) snapshot() ([]memRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	return m.rows, nil
}

func seekMem(rows []memRow, key []byte) (int, bool) {
	return slices.BinarySearchFunc(rows, key, func(r memRow, k []byte) int { return bytes.Compare(r.key, k) })
}

func (m *memDB) Get(dst, key []byte) ([]byte, bool, error) {
	rows, err := m.snapshot()
	if err != nil {
		return dst, false, err
	}
	i, ok := seekMem(rows, key)
	if !ok {
		return dst, false, nil
	}
	return append(dst, rows[i].value...), true, nil
}

func (m *memDB) Scan(lo, hi []byte) (Iterator, error) {
	rows, err := m.snapshot()
	if err != nil {
		return nil, err
	}
	if hi != nil {
		end, _ := seekMem(rows, hi)
		rows = rows[:end]
	}
	start, _ := seekMem(rows, lo)
	return &memIterator{rows: rows[start:]}, nil
}

func (m *memDB) Apply(b *Batch) error {
	ops := make([]memRow, 0, b.Len())
	b.All(func(k, v []byte) { ops = append(ops, cloneMem(k, v)) })
	slices.SortStableFunc(ops, func(x, y memRow) int { return bytes.Compare(x.key, y.key) })
	last := ops[:0]
	for i, op := range ops {
		if i+1 < len(ops) && bytes.Equal(op.key, ops[i+1].key) {
			continue
		}
		last = append(last, op)
	}
	return m.merge(last)
}

func (m *memDB) Load(r Run) error {
	var ops []memRow
	for r.Next() {
		ops = append(ops, cloneMem(r.Key(), r.Value()))
	}
	return m.merge(ops)
}

// cloneMem keeps the difference between a nil and an empty value.
func cloneMem(k, v []byte) memRow {
	row := memRow{key: bytes.Clone(k)}
	if v != nil {
		row.value = append([]byte{}, v...)
	}
	return row
}

func (m *memDB) merge(ops []memRow) error {
	old, err := m.snapshot()
	if err != nil {
		return err
	}
	rows := make([]memRow, 0, len(old)+len(ops))
	for _, op := range ops {
		n, found := seekMem(old, op.key)
		rows = append(rows, old[:n]...)
		old = old[n:]
		if found {
			old = old[1:]
		}
		if op.value != nil {
			rows = append(rows, op)
		}
	}
	rows = append(rows, old...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.rows = rows
	return nil
}

func (m *memDB) Flush() error {
	_, err := m.snapshot()
	return err
}

func (m *memDB) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.rows = true, nil
	return nil
}

type memIterator struct {
	rows []memRow
	at   int // one behind the current row
}

func (i *memIterator) Next() bool {
	if i.at >= len(i.rows) {
		return false
	}
	i.at++
	return true
}

func (i *memIterator) Key() []byte   { return i.rows[i.at-1].key }
func (i *memIterator) Value() []byte { return i.rows[i.at-1].value }
func (i *memIterator) Err() error    { return nil }

func (i *memIterator) Close() error {
	i.rows = nil
	return nil
}
