package taskstore

import (
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/tidemark/tidemark/internal/rate"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// Options say where the databases are and what they share.
type Options struct {
	// Path is the directory of all of them. Required.
	Path string
	// FS is the file system. Required.
	FS *pebblestore.FS
	// Shared is what the databases have in common. Default: each has its own.
	Shared *pebblestore.Shared
	// Quiet puts off what databases do in the background until Settle.
	Quiet bool
	// Logger takes Pebble's messages. Default: none.
	Logger pebblestore.Logger
	// Rate bounds how fast all lazily opened databases together fetch what nobody waits for. Default: no bound.
	Rate *rate.Limiter
}

// Dir is the databases below a directory, <path>/<sub-topology>/<partition>.
type Dir struct {
	o      Options
	copies atomic.Int64 // checkpoints made: names them
}

// New returns the databases below a directory.
func New(o Options) *Dir { return &Dir{o: o} }

// Path returns the directory of one task.
func (d *Dir) Path(id processor.TaskID) string {
	return filepath.Join(d.o.Path, id.Sub, fmt.Sprint(id.Partition))
}

func (d *Dir) options() pebblestore.Options {
	return pebblestore.Options{Shared: d.o.Shared, FS: d.o.FS, Logger: d.o.Logger, Quiet: d.o.Quiet}
}

// Open opens the database of a task. The error wraps store.ErrHydrating if files of a snapshot are missing: see Lazy.
func (d *Dir) Open(id processor.TaskID) (store.DB, error) {
	db, err := pebblestore.Open(d.Path(id), d.options())
	if err != nil {
		return nil, fmt.Errorf("open store of task %s: %w", id, err)
	}
	return db, nil
}

// SetAside gives the directory of a damaged database another name and returns that.
func (d *Dir) SetAside(id processor.TaskID) (string, error) {
	return pebblestore.SetAside(d.o.FS, d.Path(id))
}

// Wipe removes the database of a task.
func (d *Dir) Wipe(id processor.TaskID) error { return pebblestore.Destroy(d.o.FS, d.Path(id)) }
