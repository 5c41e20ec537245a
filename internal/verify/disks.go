package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/internal/verify/witness"
	"github.com/tidemark/tidemark/internal/verify/workload"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// compareDisks checks every database under the state directories of instances that do not run: each must be
// what its changelogs give up to its positions. It opens copies, so that a killed instance's own recovery is
// still to come.
func compareDisks(ctx context.Context, client []kgo.Opt, specs []spec) (*check.Report, int, error) {
	var disks []*witness.Disk
	for _, s := range specs {
		d, err := readDisks(s)
		if err != nil {
			return nil, 0, err
		}
		disks = append(disks, d...)
	}
	if len(disks) == 0 {
		return new(check.Report), 0, nil
	}
	names, err := changelog.NewNames(specs[0].App, 0)
	if err != nil {
		return nil, 0, err
	}
	r, err := witness.CompareDisks(ctx, client, names, disks)
	return r, len(disks), err
}

func readDisks(s spec) ([]*witness.Disk, error) {
	plan, err := workload.Topology(s.App, s.topics()).Build()
	if err != nil {
		return nil, err
	}
	var out []*witness.Disk
	for _, sub := range plan.Subs {
		if len(sub.Stores) == 0 {
			continue
		}
		dir := filepath.Join(s.disks(), sub.ID)
		entries, err := os.ReadDir(dir)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if copied(e.Name()) {
				continue // of a snapshot or a restore that was cut short
			}
			n, err := strconv.Atoi(e.Name())
			if err != nil {
				return nil, fmt.Errorf("%s: what is %s?", dir, e.Name())
			}
			d, err := readCopy(s.Name, processor.TaskID{Sub: sub.ID, Partition: int32(n)}, filepath.Join(dir, e.Name()), func(db *pebblestore.DB, id processor.TaskID) (*witness.Disk, error) {
				return witness.ReadDisk(s.Name, id, db, sub.Stores)
			})
			if err != nil {
				return nil, err
			}
			if d != nil {
				out = append(out, d)
			}
		}
	}
	return out, nil
}

// copied says whether a directory is a copy of a database that a crash has left.
func copied(name string) bool {
	return strings.HasSuffix(name, pebblestore.CheckpointSuffix) || strings.HasSuffix(name, ".restore")
}

func readCopy(owner string, id processor.TaskID, dir string, read func(*pebblestore.DB, processor.TaskID) (*witness.Disk, error)) (*witness.Disk, error) {
	tmp, err := os.MkdirTemp("", "verify-disk-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := os.CopyFS(filepath.Join(tmp, "db"), os.DirFS(dir)); err != nil {
		return nil, err
	}
	db, err := pebblestore.Open(filepath.Join(tmp, "db"), pebblestore.Options{})
	if errors.Is(err, store.ErrHydrating) {
		return nil, nil // files of a snapshot are missing: what it is worth shows when it is opened again
	}
	if err != nil {
		return nil, fmt.Errorf("%s, task %s: %w", owner, id, err)
	}
	defer db.Close()
	return read(db, id)
}
