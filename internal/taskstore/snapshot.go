package taskstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// Checkpoint makes a copy of an open database of a task, beside it.
func (d *Dir) Checkpoint(id processor.TaskID, db store.DB) (snapshot.Copy, error) {
	dir := fmt.Sprintf("%s-%d%s", d.Path(id), d.copies.Add(1), pebblestore.CheckpointSuffix)
	cp, err := db.(*pebblestore.DB).Checkpoint(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of task %s: %w", id, err)
	}
	return checkpoint{cp}, nil
}

// checkpoint is a checkpoint in the terms of package snapshot.
type checkpoint struct{ *pebblestore.Checkpoint }

func (c checkpoint) Files() ([]snapshot.LocalFile, error) {
	files, err := c.Checkpoint.Files()
	out := make([]snapshot.LocalFile, len(files))
	for i, f := range files {
		out[i] = snapshot.LocalFile(f)
	}
	return out, err
}

// Fill begins to replace the database of a task, which is closed.
func (d *Dir) Fill(id processor.TaskID) (snapshot.Filling, error) {
	r, err := pebblestore.NewRestore(d.o.FS, d.Path(id))
	if err != nil {
		return nil, fmt.Errorf("restore of task %s: %w", id, err)
	}
	return filling{r}, nil
}

// filling is a restore in the terms of package snapshot.
type filling struct{ *pebblestore.Restore }

func (f filling) Create(name string) (snapshot.Sink, error) { return f.Restore.Create(name) }

// Lazy opens the database of a task over a snapshot. Its directory is empty or was left by an earlier Lazy of the same one.
func (d *Dir) Lazy(id processor.TaskID, r snapshot.Source) (store.DB, error) {
	lazy := pebblestore.Lazy{Identity: r.Key, OnHydrated: r.Hydrated, Rate: d.o.Rate}
	files := make(map[string]snapshot.File, len(r.Manifest.Files))
	for _, f := range r.Manifest.Files {
		files[f.Name] = f
		lazy.Files = append(lazy.Files, pebblestore.LazyFile{Name: f.Name, Size: f.Size, Sum: f.Sum, Data: f.Data})
	}
	lazy.Fetch = func(ctx context.Context, f pebblestore.LazyFile, offset, length int64) (io.ReadCloser, error) {
		body, err := r.Fetch(ctx, files[f.Name], offset, length)
		if errors.Is(err, objects.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err) // the database takes it for final
		}
		return body, err
	}
	db, err := pebblestore.OpenLazy(d.Path(id), d.options(), lazy)
	if err != nil {
		return nil, fmt.Errorf("open snapshot of task %s: %w", id, err)
	}
	return db, nil
}

// Missing returns the key of the snapshot of which a directory still lacks files, and false if it lacks none.
func (d *Dir) Missing(id processor.TaskID) (string, bool, error) {
	return pebblestore.LazyIdentity(d.o.FS, d.Path(id))
}

// Hydration returns how much of a lazily opened database is here, in bytes.
func (d *Dir) Hydration(db store.DB) (have, total int64) { return db.(*pebblestore.DB).Hydration() }

// Settle lets an open database do what was put off.
func (d *Dir) Settle(db store.DB) { db.(*pebblestore.DB).Settle() }

// Sweep removes what a crash has left of checkpoints and restores. No task may be open.
func (d *Dir) Sweep() error {
	subs, err := d.o.FS.List(d.o.Path)
	if err != nil {
		return err
	}
	for _, sub := range subs {
		parent := filepath.Join(d.o.Path, sub)
		if tasks, err := d.o.FS.List(parent); err != nil || len(tasks) == 0 {
			continue // a file
		}
		if err := pebblestore.RemoveCheckpoints(d.o.FS, parent); err != nil {
			return err
		}
	}
	return nil
}
