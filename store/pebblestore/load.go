package pebblestore

import (
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/store"
)

const (
	// maxTable is about the size of the table files Load makes.
	maxTable = 64 << 20
	// runPrefix marks files of a run that is not part of the database yet.
	runPrefix = "tidemark-run-"
)

// Load implements store.DB. It writes table files and makes them part of the database in one step.
func (d *DB) Load(r store.Run) error {
	if err := d.enter(); err != nil {
		return d.fail("load", err)
	}
	defer d.leave()
	// What was applied before must not be lost when the run survives.
	if err := d.flush(); err != nil {
		return err
	}
	paths, err := d.writeTables(r)
	if err == nil && len(paths) > 0 {
		err = d.pebble.Ingest(context.Background(), paths)
	}
	if err != nil {
		err = d.fail("load", err)
		for _, p := range paths {
			_ = d.gate.Remove(p) // Open removes what is left
		}
		return err
	}
	d.loaded()
	return nil
}

// writeTables writes the run to files and returns their paths, those of an incomplete run included.
func (d *DB) writeTables(r store.Run) (paths []string, err error) {
	var w *sstable.Writer
	for r.Next() {
		if w == nil {
			d.runs++
			path := d.gate.PathJoin(d.dir, fmt.Sprintf("%s%06d", runPrefix, d.runs))
			f, err := d.gate.Create(path, vfs.WriteCategoryUnspecified)
			if err != nil {
				return paths, err
			}
			paths = append(paths, path)
			// The options of the lowest level would do for sets, but there a delete is taken to have nothing below it and
			// is skipped by every read.
			w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), d.popts.MakeWriterOptions(0, d.pebble.TableFormat()))
		}
		if end, value := r.End(), r.Value(); end != nil {
			// The range ends before the next key, so tables do not overlap even if this one ends here.
			err = w.DeleteRange(r.Key(), end)
		} else if value != nil {
			err = w.Set(r.Key(), value)
		} else {
			err = w.Delete(r.Key())
		}
		if err == nil && w.Raw().EstimatedSize() >= maxTable {
			err = w.Close()
			w = nil
		}
		if err != nil {
			break
		}
	}
	if w == nil {
		return paths, err
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return paths, err
}

// removeRuns removes what a crash inside Load has left: those files were never part of the database.
func (d *DB) removeRuns() error {
	names, err := d.gate.List(d.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, runPrefix) {
			if err := d.gate.Remove(d.gate.PathJoin(d.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
