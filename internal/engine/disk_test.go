package engine_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tidemark/tidemark/internal/taskstore"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// storage holds the databases of one instance over its restarts.
type storage interface {
	open(id processor.TaskID) (store.DB, error)
	wipe(id processor.TaskID) error
	setAside(id processor.TaskID) error
	// found is what the next process finds after a crash. Who still writes to the old one is a ghost.
	found() storage
}

// disk keeps databases in memory.
type disk struct {
	mu    sync.Mutex
	dbs   map[processor.TaskID]*keptDB
	wiped int
}

// keptDB is a memory database whose Close only ends this use of it.
type keptDB struct {
	store.DB
	d    *disk
	used bool
}

func (k *keptDB) Close() error {
	k.d.mu.Lock()
	defer k.d.mu.Unlock()
	k.used = false
	return nil
}

func (d *disk) open(id processor.TaskID) (store.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dbs == nil {
		d.dbs = make(map[processor.TaskID]*keptDB)
	}
	k := d.dbs[id]
	if k == nil {
		k = &keptDB{DB: store.NewMem(), d: d}
		d.dbs[id] = k
	}
	if k.used {
		return nil, store.ErrLocked
	}
	k.used = true
	return k, nil
}

func (d *disk) wipe(id processor.TaskID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dbs, id)
	d.wiped++
	return nil
}

func (d *disk) setAside(id processor.TaskID) error { return d.wipe(id) }

func (d *disk) found() storage {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := &disk{dbs: make(map[processor.TaskID]*keptDB)}
	for id, k := range d.dbs {
		out.dbs[id] = &keptDB{DB: cloneDB(k.DB), d: out}
	}
	return out
}

// cloneDB copies a memory database.
func cloneDB(db store.DB) store.DB {
	out := store.NewMem()
	it, err := db.Scan(nil, nil)
	if err != nil {
		panic(err)
	}
	var b store.Batch
	for it.Next() {
		b.Set(it.Key(), it.Value())
	}
	if err := out.Apply(&b); err != nil {
		panic(err)
	}
	return out
}

// pebbles keeps databases on Pebble.
type pebbles struct {
	base *pebblestore.FS // without faults
	fs   *pebblestore.FS
}

func newPebbles() *pebbles {
	fs := pebblestore.NewMemFS()
	return &pebbles{fs, fs}
}

// tasks returns the databases with what the engine needs for snapshots.
func (p *pebbles) tasks() *taskstore.Dir {
	return taskstore.New(taskstore.Options{Path: "/", FS: p.fs})
}

func (p *pebbles) dir(id processor.TaskID) string { return p.tasks().Path(id) }

func (p *pebbles) open(id processor.TaskID) (store.DB, error) { return p.tasks().Open(id) }

func (p *pebbles) wipe(id processor.TaskID) error { return p.tasks().Wipe(id) }

func (p *pebbles) setAside(id processor.TaskID) error {
	_, err := p.tasks().SetAside(id)
	return err
}

func (p *pebbles) found() storage {
	fs, err := p.base.CrashClone(50, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		panic(err)
	}
	return &pebbles{fs, fs}
}

// rows returns the rows of a task's first store as they are on a disk, and the position in its changelog.
func rows(t *testing.T, d storage, id processor.TaskID, specs []store.Spec) map[string]string {
	t.Helper()
	db, err := d.open(id)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(db, specs, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	out := make(map[string]string)
	if err := st.Rows(0, func(key, row []byte) { out[string(key)] = string(row[8:]) }); err != nil {
		t.Fatal(err)
	}
	return out
}
