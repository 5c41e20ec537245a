// Package unit measures single mechanisms of one task without a broker: what a record, a firing or a control record costs
// in CPU. Everything but the Kafka client is the real thing: operators, state, the database on disk.
//
// It must not be used for claims about whole applications. One goroutine runs it.
package unit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
	"github.com/tidemark/tidemark/topology"
)

// task is one task of one sub-topology that commits as an instance does, to nobody.
type task struct {
	proc   *processor.Task
	state  *store.State
	db     *pebblestore.DB
	shared *pebblestore.Shared

	sent    int   // records since the start
	changes int   // changelog records
	bytes   int64 // of uncommitted output
	commits int
}

// Send implements processor.Output.
func (t *task) Send(_ int, _ []byte, _ int64, key, value []byte, _ []processor.Header) error {
	t.sent++
	t.bytes += int64(len(key) + len(value))
	return nil
}

// Late implements processor.Output.
func (t *task) Late(r *processor.Late) error {
	return fmt.Errorf("unit: a record of %d is late by %d ms", r.Record.Time, r.By)
}

// with runs f with the only task of a topology.
func with(top *topology.Topology, f func(*task) error) error {
	dir, err := os.MkdirTemp("", "bench-unit")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := open(top, dir)
	if err != nil {
		return err
	}
	return errors.Join(f(t), t.close())
}

// open makes the only task of a topology, with its database in dir.
func open(top *topology.Topology, dir string) (*task, error) {
	plan, err := top.Build()
	if err != nil {
		return nil, err
	}
	if len(plan.Subs) != 1 {
		return nil, errors.New("unit: not one sub-topology")
	}
	sub := plan.Subs[0]
	t := &task{shared: pebblestore.NewShared(pebblestore.SharedOptions{CacheBytes: 32 << 20})}
	if t.db, err = pebblestore.Open(filepath.Join(dir, "db"), pebblestore.Options{Shared: t.shared}); err != nil {
		return nil, err
	}
	if t.state, err = store.Open(t.db, sub.Stores, store.Options{ViewBytes: 96 << 20, LayerBytes: 64 << 20}); err != nil {
		return nil, err
	}
	t.proc, err = sub.NewTask(processor.Env{
		Task: processor.TaskID{Sub: sub.ID}, Output: t, State: t.state, Now: func() int64 { return 0 },
	})
	if err != nil {
		return nil, err
	}
	t.proc.Start(0)
	return t, nil
}

// firings is how many windows fire before the worker looks up, as in an instance.
const firings = 256

// process takes one record and lets fire what is due. If that needs more than one transaction, there are commits in between.
func (t *task) process(r *processor.Record, overlay int64) error {
	if err := t.proc.Process(0, r); err != nil {
		return err
	}
	for t.proc.Moved() {
		done, err := t.proc.Advance(firings)
		if err != nil {
			return err
		}
		if !done && t.state.Dirty()+t.bytes >= overlay {
			if err := t.commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *task) commit() error {
	if err := t.proc.Flush(); err != nil {
		return err
	}
	err := t.state.Seal(func(store.Change) error {
		t.changes++
		return nil
	})
	if err != nil {
		return err
	}
	if err := t.state.Commit(t.proc.AppendClocks(nil), 0); err != nil {
		return err
	}
	t.bytes = 0
	t.commits++
	return t.state.Persist(0, false)
}

func (t *task) close() error {
	return errors.Join(t.proc.Close(), t.state.Close(), t.db.Close(), t.shared.Close())
}

// event is a time in the runs of this package: ms after a round one.
func event(ms int64) int64 { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() + ms }
