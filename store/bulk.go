package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
)

// Bulk fills a DB from changelogs: it keeps the last value of every key in memory, sorts, and loads. One goroutine uses
// it.
type Bulk struct {
	db      DB
	specs   []Spec
	numbers []uint16
	dues    []int
	layouts []Layout
	floors  [][]byte
	dropped []bool // by store: the floor is above that of the DB
	catalog catalog
	limit   int64
	seed    maphash.Seed
	parts   []bulkPart
	slabs   slabs
	bytes   int64
	empty   bool // the DB held nothing, and nothing was loaded so far
	changed bool // something was added
	done    bool
	loading bool
	buf     []byte
}

// bulkPart holds one store: a generation of its own, with the last value of every key.
type bulkPart struct {
	gen   gen
	index table
}

// NewBulk starts a bulk restore into db, which may hold earlier state of the same stores; the caller keeps db. limit
// is the size of the memory in bytes; when it is reached what has been added is loaded into the DB. Default: 64 MB.
// A crash before Finish leaves the earlier progress, from which the restore may run again, or none, see ErrPartial.
func NewBulk(db DB, specs []Spec, limit int64) (*Bulk, error) {
	_, c, fresh, err := readMeta(db)
	if err != nil {
		return nil, err
	}
	specs, dues := withDues(specs)
	numbers, _, err := c.resolve(specs)
	if err != nil {
		return nil, err
	}
	floors, err := readFloors(db, numbers)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 64 << 20
	}
	b := &Bulk{
		db: db, specs: specs, numbers: numbers, dues: dues, layouts: layoutsOf(specs), floors: floors,
		dropped: make([]bool, len(specs)), catalog: c, limit: limit, seed: maphash.MakeSeed(), empty: fresh,
		parts: make([]bulkPart, len(specs)),
	}
	b.reset()
	return b, nil
}

func (b *Bulk) reset() {
	b.bytes, b.slabs = 0, slabs{next: maxSlab / 2}
	for i := range b.parts {
		b.parts[i] = bulkPart{gen: gen{no: uint32(i) + 1}}
	}
}

// Expire raises the floor of a store, as State.Expire does: rows below are not restored, and leave the DB.
func (b *Bulk) Expire(store int, floor []byte) {
	if bytes.Compare(floor, b.floors[store]) > 0 {
		b.floors[store] = bytes.Clone(floor)
		b.dropped[store] = true
	}
}

// Add takes one change of the store with that index in the specs, as Seal has emitted it: key, value, header and
// timestamp in ms. A nil value removes the row; a later Add wins. It copies what it keeps.
func (b *Bulk) Add(store int, key, value, header []byte, time int64) error {
	if b.done {
		return errors.New("store: bulk: used after Finish")
	}
	b.changed = true
	if l := b.layouts[store]; l != nil {
		var err error
		if key, value, err = l.Import(b.buf[:0], key, value, header, time); err != nil {
			return fmt.Errorf("store: bulk: %s: %w: %w", b.specs[store].ID, ErrCorrupt, err)
		}
		if n := len(key) + len(value); n > cap(b.buf) {
			b.buf = make([]byte, 0, 2*n)
		}
	}
	if bytes.Compare(key, b.floors[store]) < 0 {
		return nil
	}
	return b.add(store, key, value, time)
}

func (b *Bulk) add(store int, key, value []byte, time int64) error {
	p := &b.parts[store]
	hash := uint32(maphash.Bytes(b.seed, key))
	e := p.find(hash, key)
	if e == nil {
		p.index.insert(hash, uint32(len(p.gen.entries)))
		p.gen.entries = append(p.gen.entries, entry{klen: uint32(len(key))})
		e = &p.gen.entries[len(p.gen.entries)-1]
		b.bytes += entrySize + slotBytes
	} else if value != nil && e.vlen == uint32(timeLen+len(value)) {
		// The usual update has the size of the value it replaces, and nobody else has seen that.
		old := p.gen.dbValue(e)
		binary.BigEndian.PutUint64(old, uint64(time))
		copy(old[timeLen:], value)
		return nil
	}
	head := numberLen + len(key)
	row := appendKey(b.slabs.room(head+timeLen+len(value)), b.numbers[store], key)
	e.vlen = tombstone
	if value != nil {
		row = append(binary.BigEndian.AppendUint64(row, uint64(time)), value...)
		e.vlen = uint32(len(row) - head)
	}
	e.slab, e.off = b.slabs.keep(&p.gen, row)
	if b.bytes += int64(len(row)); b.bytes >= b.limit && !b.loading {
		return b.load(nil)
	}
	return nil
}

// addDues adds the due times of the rows in memory.
func (b *Bulk) addDues() error {
	b.loading = true
	defer func() { b.loading = false }()
	for i, d := range b.dues {
		if d < 0 || b.specs[i].Kind == Session {
			continue
		}
		g := &b.parts[i].gen
		for n := range g.entries {
			e := &g.entries[n]
			row := g.dbValue(e)
			if row == nil {
				continue
			}
			t, ok := dueTime(b.specs[i].Kind, g.key(e), row[timeLen:])
			if !ok {
				return fmt.Errorf("store: bulk: %s: row %q has no due time: %w", b.specs[i].ID, g.key(e), ErrCorrupt)
			}
			b.buf = append(AppendTimeKey(b.buf[:0], t), g.key(e)...)
			if err := b.add(d, b.buf, []byte{}, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *bulkPart) find(hash uint32, key []byte) *entry {
	if p.index.n == 0 {
		return nil
	}
	for i := hash & p.index.mask; ; i = (i + 1) & p.index.mask {
		s := p.index.slots[i]
		if s == 0 {
			return nil
		}
		if uint32(s>>32) == hash {
			if e := &p.gen.entries[uint32(s)-1]; bytes.Equal(p.gen.key(e), key) {
				return e
			}
		}
	}
}

// Finish loads the rest together with the progress it stands for. The Bulk is used up.
func (b *Bulk) Finish(progress []byte) error {
	if b.done {
		return errors.New("store: bulk: used after Finish")
	}
	b.done = true
	m := []meta{{progressKey, progress}, {storesKey, b.catalog.append(nil)}}
	if hasFloors(b.floors) {
		m = append([]meta{{floorsKey, appendFloors(nil, b.numbers, b.floors)}}, m...)
	}
	return b.load(m)
}

// load writes what is in memory as one run.
func (b *Bulk) load(m []meta) error {
	if err := b.addDues(); err != nil {
		return err
	}
	gs := gens{base: 1}
	for i := range b.parts {
		g := &b.parts[i].gen
		// A generation has a range of entries per store; here only its own is not empty.
		g.start = make([]uint32, len(b.parts)+1)
		for j := i + 1; j < len(g.start); j++ {
			g.start[j] = uint32(len(g.entries))
		}
		gs.push(g)
	}
	r := newLayerRun(&gs, b.numbers, m)
	r.skipDeletes, r.floors, r.dropped = b.empty, b.floors, b.dropped
	r.lists = derivedLists(b.specs, b.dues)
	for i := range b.specs {
		if b.changed && b.specs[i].Derived {
			r.wiped = append(r.wiped, i)
		}
	}
	if err := b.db.Load(r); err != nil {
		return fmt.Errorf("store: bulk load: %w", err)
	}
	b.empty = false
	b.reset()
	return nil
}
