package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// ErrPartial is returned if the DB holds rows but no progress: the remains of a restore that was cut short. They cannot
// be completed, because tombstones may have gone from the changelog since; wipe the DB.
var ErrPartial = errors.New("store: rows without progress")

// Options are the limits of a State.
type Options struct {
	// ViewBytes is the budget of unchanged rows in all views together. Rows with uncommitted changes come on top and
	// never leave. Default: 64 MB.
	ViewBytes int64
	// LayerBytes, LayerRecords and LayerAge say when Persist and Freeze find the committed layer due: when its changes
	// exceed so many bytes or records, or when its oldest commit is so old. Defaults: 64 MB, 1,000,000, 30 s.
	LayerBytes   int64
	LayerRecords int64
	LayerAge     time.Duration
}

func (o Options) withDefaults() Options {
	if o.ViewBytes <= 0 {
		o.ViewBytes = 64 << 20
	}
	if o.LayerBytes <= 0 {
		o.LayerBytes = 64 << 20
	}
	if o.LayerRecords <= 0 {
		o.LayerRecords = 1_000_000
	}
	if o.LayerAge <= 0 {
		o.LayerAge = 30 * time.Second
	}
	return o
}

// State is the state of one task. See the package comment for its life cycle and goroutine.
type State struct {
	db       DB
	specs    []Spec
	numbers  []uint16
	dues     []int // by store: the store of its due times, or -1
	layouts  []Layout
	ceilings []ceiling
	o        Options
	catalog  catalog
	added    []string
	seed     maphash.Seed
	views    []viewer // by store; nil where nobody asked for one
	wrappers []any    // views of the other kinds, over those
	turn     int      // view that gives up rows next

	// Generations up to persisted are in the DB, those up to frozenTo in the frozen layer, those up to committed in the
	// active layer. One above may be sealed; cur is the one in progress.
	persisted, frozenTo, committed, cur uint32

	committedGens gens // those above persisted
	active        *layer
	frozen        *layer
	// Floors of all stores, replaced as a whole: in the current generation, in the active layer, and in the DB.
	floors, committedFloors, persistedFloors [][]byte
	flight                                   *Frozen // the write of frozen
	sealed                                   *gen
	broken                                   bool // Seal has failed: only Rollback helps
	slabs                                    slabs
	exported                                 slabs   // keys made by layouts
	queues                                   []queue // of due times, over all stores

	// For readers on other goroutines, see Reading.
	finder *index
	gate   *gate
	ahead  atomic.Uint32 // newest generation that may have reached the DB

	progress      []byte // of persisted
	layerProgress []byte // of committed
	layerSince    int64  // ms, of the oldest commit in the active layer
	layerCommits  int64
	layerBytes    int64
	layerRecords  int64
	applied       bool  // batches were applied and not flushed
	appliedAt     int64 // ms, when the oldest of them was

	rowBytes   int64 // all rows of all views
	cleanBytes int64 // of them without uncommitted changes
	overlay    int64 // uncommitted writes of the current generation
	getBuf     []byte
	items      []item // scratch of scans
	spare      []item
}

// viewer is a View without its type.
type viewer interface {
	// seal encodes the dirty rows into g.
	seal(g *gen, emit func(Change) error) error
	// promoted is told that the sealed generation has become part of the layer.
	promoted()
	// rollback drops every dirty row. g is the sealed generation, nil if there is none.
	rollback(g *gen)
	// raise is told of a new floor.
	raise(floor []byte)
	// sweep moves the hand of the clock over up to n rows, and reports whether it passed the last row.
	sweep(n int) (wrapped bool)
}

// Open returns the state kept in db. The State owns db from now on; if Open fails the caller keeps it. Stores the DB
// does not know yet are in Added and must be restored from their changelogs before the first Commit.
func Open(db DB, specs []Spec, o Options) (*State, error) {
	progress, c, fresh, err := readMeta(db)
	if err != nil {
		return nil, err
	}
	specs, dues := withDues(specs)
	numbers, added, err := c.resolve(specs)
	if err != nil {
		return nil, err
	}
	s := &State{
		db: db, specs: specs, numbers: numbers, dues: dues, layouts: layoutsOf(specs), o: o.withDefaults(), catalog: c,
		added: added, seed: maphash.MakeSeed(), gate: newGate(), views: make([]viewer, len(specs)), wrappers: make([]any, len(specs)), cur: 1, active: newLayer(len(specs), 0),
	}
	s.finder = newIndex(s.seed)
	if !fresh {
		s.progress = progress
	}
	if s.floors, err = readFloors(db, numbers); err != nil {
		return nil, err
	}
	s.committedFloors, s.persistedFloors = s.floors, s.floors
	if s.ceilings, err = readCeilings(db, specs, numbers, s.floors); err != nil {
		return nil, err
	}
	return s, nil
}

// Progress returns the progress last persisted with the rows, nil if there is none.
func (s *State) Progress() []byte { return s.progress }

// Added returns the IDs of the stores the DB did not hold when it was opened.
func (s *State) Added() []string { return s.added }

// Dirty returns the bytes of uncommitted writes, of the current and the sealed generation.
func (s *State) Dirty() int64 {
	n := s.overlay
	if s.sealed != nil {
		n += s.sealed.bytes
	}
	return n
}

func (s *State) hash(key []byte) uint32 { return uint32(maphash.Bytes(s.seed, key)) }

// read finds the committed row of a key that is not in its view: timestamp and value, and its position if it is in a
// layer. The bytes are valid until the next read.
func (s *State) read(store int, key []byte, hash uint32) (row []byte, ok bool, pos uint64, err error) {
	for _, l := range [...]*layer{s.active, s.frozen} {
		if l == nil {
			continue
		}
		p := &l.parts[store]
		if i, found := p.find(&s.committedGens, hash, key); found {
			pos = p.refs[i]
			row = s.committedGens.value(pos)
			return row, row != nil, pos, nil
		}
	}
	if s.ceilings[store].below(key) {
		return nil, false, 0, nil
	}
	s.getBuf = appendKey(s.getBuf[:0], s.numbers[store], key)
	n := len(s.getBuf)
	// The value goes behind the key.
	buf, ok, err := s.db.Get(s.getBuf, s.getBuf)
	if err != nil {
		return nil, false, 0, fmt.Errorf("store: %s: read: %w", s.specs[store].ID, err)
	}
	s.getBuf = buf
	row = buf[n:]
	if ok && len(row) < timeLen {
		return nil, false, 0, fmt.Errorf("store: %s: row of %d bytes: %w", s.specs[store].ID, len(row), ErrCorrupt)
	}
	return row, ok, 0, nil
}

func (s *gens) value(pos uint64) []byte {
	g, e := s.at(pos)
	return g.dbValue(e)
}

// splitRow takes apart a row of the DB.
func splitRow(row []byte) (time int64, value []byte) {
	return int64(binary.BigEndian.Uint64(row)), row[timeLen:]
}

// index makes the layers find a committed row that leaves its view.
func (s *State) index(store int, hash uint32, pos uint64) {
	switch no := uint32(pos >> 32); {
	case no <= s.persisted:
	case no <= s.frozenTo:
		s.frozen.parts[store].put(&s.committedGens, hash, pos)
	default:
		s.active.parts[store].put(&s.committedGens, hash, pos)
	}
}

// makeRoom lets clean rows go when another one of that size does not fit into the budget. It looks at a bounded number
// of rows: after a commit that has made many rows clean at once, the view shrinks over the next loads.
func (s *State) makeRoom(size int64) {
	for range 4 {
		if s.cleanBytes+size <= s.o.ViewBytes {
			return
		}
		if v := s.views[s.turn]; v == nil || v.sweep(64) {
			s.turn = (s.turn + 1) % len(s.views)
		}
	}
}

// Seal ends the current generation: it encodes every changed row once and calls emit for each row of a store with a
// changelog, by store and then in the order in which the rows were first changed. At most one generation may be sealed:
// Commit or Rollback comes before the next Seal. After an error only Rollback is allowed.
func (s *State) Seal(emit func(Change) error) error {
	if s.sealed != nil {
		return errors.New("store: seal: the last generation is neither committed nor rolled back")
	}
	g := &gen{no: s.cur, start: make([]uint32, 0, len(s.views)+1), floors: s.floors}
	s.sealed = g
	s.cur++
	s.overlay = 0
	s.broken = true
	for _, v := range s.views {
		g.start = append(g.start, uint32(len(g.entries)))
		if v != nil {
			if err := v.seal(g, emit); err != nil {
				return err
			}
		}
	}
	g.start = append(g.start, uint32(len(g.entries)))
	s.broken = false
	return nil
}

// Commit makes the sealed generation part of the committed layer. progress stands for everything up to this commit;
// now is in ms.
func (s *State) Commit(progress []byte, now int64) error {
	g := s.sealed
	if g == nil || s.broken {
		return errors.New("store: commit: no generation is sealed")
	}
	s.sealed = nil
	s.committed, s.committedFloors = g.no, g.floors
	s.committedGens.push(g)
	s.cleanBytes += g.clean
	if s.layerCommits == 0 {
		s.layerSince = now
	}
	s.layerCommits++
	s.layerBytes += g.bytes + int64(len(g.entries))*entrySize
	s.layerRecords += int64(len(g.entries))
	s.layerProgress = bytes.Clone(progress)
	for _, v := range s.views {
		if v != nil {
			v.promoted()
		}
	}
	if cap(s.items) > 1<<16 {
		s.items, s.spare = nil, nil
	}
	return nil
}

// Rollback drops the sealed and the current generation. The rows they have changed leave the views and are read again
// when they are needed. All Row pointers become invalid.
func (s *State) Rollback() {
	for _, v := range s.views {
		if v != nil {
			v.rollback(s.sealed)
		}
	}
	s.sealed, s.broken, s.overlay = nil, false, 0
	s.floors = s.committedFloors
	for i, v := range s.views {
		if v != nil {
			v.raise(s.floors[i])
		}
	}
	for _, q := range s.queues {
		q.reset()
	}
}

// Memory says what a State holds in memory, in bytes.
type Memory struct {
	// Views is the size of all rows of all views, Clean the part of it that may leave.
	Views, Clean int64
	// Overlay is the size of uncommitted writes: what Dirty returns.
	Overlay int64
	// Layer and Frozen are the sizes of the committed layer and of the layer being written.
	Layer, Frozen int64
	// LayerRecords and FrozenRecords count their changes: what a restart would have to replay.
	LayerRecords, FrozenRecords int64
}

// Memory returns the present sizes. It is cheap.
func (s *State) Memory() Memory {
	m := Memory{
		Views: s.rowBytes, Clean: s.cleanBytes, Overlay: s.Dirty(), Layer: s.layerBytes, LayerRecords: s.layerRecords,
	}
	if s.flight != nil {
		m.Frozen, m.FrozenRecords = s.flight.bytes, s.flight.records
	}
	return m
}

// Close drops what is not committed, persists the committed layer, and closes the DB; reads of it end with ErrClosed. A
// frozen layer must be finished before.
func (s *State) Close() error {
	err := s.Persist(0, true)
	if err == nil && s.applied {
		err = s.db.Flush()
	}
	if err = errors.Join(err, s.gate.close(), s.db.Close()); err != nil {
		return fmt.Errorf("store: close: %w", err)
	}
	return nil
}
