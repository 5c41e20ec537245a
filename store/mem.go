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

// memOp is a row to set or delete, or a range to delete.
type memOp struct {
	memRow
	end []byte
}

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
	rows, err := m.snapshot()
	if err != nil {
		return err
	}
	var ops []memOp
	flush := func() {
		slices.SortStableFunc(ops, func(x, y memOp) int { return bytes.Compare(x.key, y.key) })
		last := ops[:0]
		for i, op := range ops {
			if i+1 < len(ops) && bytes.Equal(op.key, ops[i+1].key) {
				continue
			}
			last = append(last, op)
		}
		rows, ops = mergeMem(rows, last), nil
	}
	b.All(func(k, v, end []byte) {
		if end == nil {
			ops = append(ops, cloneMem(k, v, nil))
			return
		}
		flush()
		rows = mergeMem(rows, []memOp{cloneMem(k, nil, end)})
	})
	flush()
	return m.replace(rows)
}

func (m *memDB) Load(r Run) error {
	old, err := m.snapshot()
	if err != nil {
		return err
	}
	var ops []memOp
	for r.Next() {
		ops = append(ops, cloneMem(r.Key(), r.Value(), r.End()))
	}
	return m.replace(mergeMem(old, ops))
}

// cloneMem keeps the difference between a nil and an empty value.
func cloneMem(k, v, end []byte) memOp {
	op := memOp{memRow{key: bytes.Clone(k)}, bytes.Clone(end)}
	if v != nil {
		op.value = append([]byte{}, v...)
	}
	return op
}

// mergeMem returns the rows after operations with ascending keys.
func mergeMem(old []memRow, ops []memOp) []memRow {
	rows := make([]memRow, 0, len(old)+len(ops))
	for _, op := range ops {
		n, found := seekMem(old, op.key)
		rows = append(rows, old[:n]...)
		old = old[n:]
		switch {
		case op.end != nil:
			if n, _ := seekMem(old, op.end); bytes.Compare(op.key, op.end) < 0 {
				old = old[n:]
			}
			continue
		case found:
			old = old[1:]
		}
		if op.value != nil {
			rows = append(rows, op.memRow)
		}
	}
	return append(rows, old...)
}

func (m *memDB) replace(rows []memRow) error {
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
