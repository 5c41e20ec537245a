package sim

import (
	"math/rand/v2"
	"sync"

	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/taskstore"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// disk holds the databases of one instance over its restarts.
type disk interface {
	open(id processor.TaskID) (store.DB, error)
	wipe(id processor.TaskID) error
	// crash returns the disk as the next process finds it. The present one stays usable: whoever still writes to
	// it is a ghost.
	crash(rng *rand.Rand) (disk, error)
	tasks() []processor.TaskID
}

// memDisk keeps every write.
type memDisk struct {
	mu  sync.Mutex
	dbs map[processor.TaskID]*keptDB
}

// keptDB is a database in memory whose Close only ends this use of it.
type keptDB struct {
	store.DB
	d    *memDisk
	used bool
}

func newMemDisk() *memDisk { return &memDisk{dbs: make(map[processor.TaskID]*keptDB)} }

// Close implements store.DB.
func (k *keptDB) Close() error {
	k.d.mu.Lock()
	defer k.d.mu.Unlock()
	k.used = false
	return nil
}

func (d *memDisk) open(id processor.TaskID) (store.DB, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
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

func (d *memDisk) wipe(id processor.TaskID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dbs, id)
	return nil
}

func (d *memDisk) crash(*rand.Rand) (disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := newMemDisk()
	for id, k := range d.dbs {
		db := store.NewMem()
		it, err := k.Scan(nil, nil)
		if err != nil {
			return nil, err
		}
		var b store.Batch
		for it.Next() {
			b.Set(it.Key(), it.Value())
		}
		if err := db.Apply(&b); err != nil {
			return nil, err
		}
		out.dbs[id] = &keptDB{DB: db, d: out}
	}
	return out, nil
}

func (d *memDisk) tasks() []processor.TaskID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []processor.TaskID
	for id := range d.dbs {
		out = append(out, id)
	}
	return out
}

// pebbleDisk is Pebble on a file system in memory that loses what was not synced.
type pebbleDisk struct {
	*taskstore.Dir
	fs    *pebblestore.FS
	quiet bool

	mu   sync.Mutex
	seen map[processor.TaskID]bool
}

// newPebbleDisk returns the disk of a file system. quiet is for instances with snapshots, which end it themselves.
func newPebbleDisk(fs *pebblestore.FS, quiet bool) *pebbleDisk {
	dir := taskstore.New(taskstore.Options{Path: "/", FS: fs, Quiet: quiet})
	return &pebbleDisk{Dir: dir, fs: fs, quiet: quiet, seen: make(map[processor.TaskID]bool)}
}

func (d *pebbleDisk) see(id processor.TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[id] = true
}

func (d *pebbleDisk) open(id processor.TaskID) (store.DB, error) {
	d.see(id)
	return d.Open(id)
}

// Fill and Lazy make a database as well.
func (d *pebbleDisk) Fill(id processor.TaskID) (snapshot.Filling, error) {
	d.see(id)
	return d.Dir.Fill(id)
}

func (d *pebbleDisk) Lazy(id processor.TaskID, r snapshot.Source) (store.DB, error) {
	d.see(id)
	return d.Dir.Lazy(id, r)
}

func (d *pebbleDisk) wipe(id processor.TaskID) error {
	d.mu.Lock()
	delete(d.seen, id)
	d.mu.Unlock()
	return d.Wipe(id)
}

func (d *pebbleDisk) crash(rng *rand.Rand) (disk, error) {
	fs, err := d.fs.CrashClone(rng.IntN(101), rng)
	if err != nil {
		return nil, err
	}
	out := newPebbleDisk(fs, d.quiet)
	for _, id := range d.tasks() {
		out.seen[id] = true
	}
	return out, nil
}

func (d *pebbleDisk) tasks() []processor.TaskID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []processor.TaskID
	for id := range d.seen {
		out = append(out, id)
	}
	return out
}
