package store

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	// Up to so many records a batch is cheaper for the DB than a run of its own.
	maxApply = 2000
	// A DB with applied batches is flushed after so many ms.
	maxUnflushed = 60_000
)

// Frozen is a committed layer on its way to the DB.
type Frozen struct {
	db       DB
	gens     gens
	numbers  []uint16
	upTo     uint32
	progress []byte
	stores   []byte
	floors   [][]byte
	lists    []int
	dropped  []bool // by store: the floor is above that of the DB
	now      int64
	bytes    int64
	records  int64
	flush    bool

	returned bool // Write has returned
	err      error
}

// Freeze sets the committed layer aside for writing and starts a new one, if a limit is reached or force is set. It
// takes constant time. It returns nil if nothing is due, nothing is committed, or the last frozen layer is not finished.
func (s *State) Freeze(now int64, force bool) *Frozen {
	due := force || s.layerBytes >= s.o.LayerBytes || s.layerRecords >= s.o.LayerRecords ||
		now-s.layerSince >= s.o.LayerAge.Milliseconds()
	if s.flight != nil || s.layerCommits == 0 || !due {
		return nil
	}
	f := &Frozen{
		db: s.db, gens: s.committedGens, numbers: s.numbers, upTo: s.committed,
		progress: s.layerProgress, stores: s.catalog.append(nil), now: now,
		bytes: s.layerBytes, records: s.layerRecords, floors: s.committedFloors, dropped: make([]bool, len(s.specs)),
		lists: derivedLists(s.specs, s.dues),
		flush: s.applied && now-s.appliedAt >= maxUnflushed,
	}
	for i, floor := range f.floors {
		f.dropped[i] = !bytes.Equal(floor, s.persistedFloors[i])
	}
	s.flight = f
	s.ahead.Store(s.committed)
	s.frozen, s.active = s.active, newLayer(len(s.specs), s.committed)
	s.frozenTo = s.committed
	s.layerBytes, s.layerRecords, s.layerCommits = 0, 0, 0
	return f
}

// Write writes the frozen layer to the DB. It may run on any goroutine, while the worker goes on with the State; the
// worker must learn of its return through a channel or lock before it calls Finish.
func (f *Frozen) Write() error {
	f.err = f.write()
	f.returned = true
	return f.err
}

func (f *Frozen) write() error {
	m := []meta{{progressKey, f.progress}, {storesKey, f.stores}}
	if hasFloors(f.floors) {
		m = append([]meta{{floorsKey, appendFloors(nil, f.numbers, f.floors)}}, m...)
	}
	r := newLayerRun(&f.gens, f.numbers, m)
	r.floors, r.dropped, r.lists = f.floors, f.dropped, f.lists
	if !f.small() {
		if err := f.db.Load(r); err != nil {
			return fmt.Errorf("store: persist: %w", err)
		}
		return nil
	}
	var b Batch
	for r.Next() {
		if end := r.End(); end != nil {
			b.DeleteRange(r.Key(), end)
		} else if v := r.Value(); v != nil {
			b.Set(r.Key(), v)
		} else {
			b.Delete(r.Key())
		}
	}
	err := f.db.Apply(&b)
	if err == nil && f.flush {
		err = f.db.Flush()
	}
	if err != nil {
		return fmt.Errorf("store: persist: %w", err)
	}
	return nil
}

func (f *Frozen) small() bool { return f.records <= maxApply }

// Finish lets go of the frozen layer after Write has returned, and returns its error. After an error the layer stays
// frozen and Write may be called again.
func (s *State) Finish() error {
	f := s.flight
	switch {
	case f == nil:
		return errors.New("store: finish: nothing is frozen")
	case !f.returned:
		return errors.New("store: finish: the frozen layer has not been written")
	case f.err != nil:
		return f.err
	}
	s.flight, s.frozen = nil, nil
	s.persisted, s.persistedFloors = f.upTo, f.floors
	s.committedGens.drop(f.upTo)
	s.progress = f.progress
	s.added = nil
	for _, q := range s.queues {
		q.persisted()
	}
	if !f.small() || f.flush {
		s.applied = false
	} else if !s.applied {
		s.applied, s.appliedAt = true, f.now
	}
	return nil
}

// Persist writes the committed layer to the DB and waits for it, if a limit of Options is reached or force is set. It
// is Freeze, Write and Finish in one, and also completes a frozen layer whose Write has failed.
func (s *State) Persist(now int64, force bool) error {
	if f := s.flight; f != nil {
		if !f.returned {
			return errors.New("store: persist: the frozen layer has not been written")
		}
		if f.err != nil {
			_ = f.Write() // Finish returns the error
		}
		if err := s.Finish(); err != nil {
			return err
		}
	}
	f := s.Freeze(now, force)
	if f == nil {
		return nil
	}
	_ = f.Write()
	return s.Finish()
}
