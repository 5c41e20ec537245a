package store

import (
	"errors"
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

// State is the state of one task. See the package comment for its life cycle and goroutine.
type State struct{}

// Open returns the state kept in db. The State owns db from now on; if Open fails the caller keeps it. Stores the DB
// does not know yet are in Added and must be restored from their changelogs before the first Commit.
func Open(db DB, specs []Spec, o Options) (*State, error) { panic("unfinished") }

// Progress returns the progress last persisted with the rows, nil if there is none.
func (s *State) Progress() []byte { panic("unfinished") }

// Added returns the IDs of the stores the DB did not hold when it was opened.
func (s *State) Added() []string { panic("unfinished") }

// Dirty returns the bytes of uncommitted writes, of the current and the sealed generation.
func (s *State) Dirty() int64 { panic("unfinished") }

// Seal ends the current generation: it encodes every changed row once and calls emit for each row of a store with a
// changelog, by store and then in the order in which the rows were first changed. At most one generation may be sealed:
// Commit or Rollback comes before the next Seal. After an error only Rollback is allowed.
func (s *State) Seal(emit func(Change) error) error { panic("unfinished") }

// Commit makes the sealed generation part of the committed layer. progress stands for everything up to this commit;
// now is in ms.
func (s *State) Commit(progress []byte, now int64) error { panic("unfinished") }

// Rollback drops the sealed and the current generation. The rows they have changed leave the views and are read again
// when they are needed. All Row pointers become invalid.
func (s *State) Rollback() { panic("unfinished") }

// Persist writes the committed layer to the DB and waits for it, if a limit of Options is reached or force is set. It
// is Freeze, Write and Finish in one.
func (s *State) Persist(now int64, force bool) error { panic("unfinished") }

// Freeze sets the committed layer aside for writing and starts a new one, if a limit is reached or force is set. It
// takes constant time. It returns nil if nothing is due, nothing is committed, or the last frozen layer is not finished.
func (s *State) Freeze(now int64, force bool) *Frozen { panic("unfinished") }

// Finish lets go of the frozen layer after Write has returned, and returns its error. After an error the layer stays
// frozen and Write may be called again.
func (s *State) Finish() error { panic("unfinished") }

// Close drops what is not committed, persists the committed layer, and closes the DB. A frozen layer must be finished
// before.
func (s *State) Close() error { panic("unfinished") }

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
func (s *State) Memory() Memory { panic("unfinished") }

// Frozen is a committed layer on its way to the DB.
type Frozen struct{}

// Write writes the frozen layer to the DB. It may run on any goroutine, while the worker goes on with the State; the
// worker must learn of its return through a channel or lock before it calls Finish.
func (f *Frozen) Write() error { panic("unfinished") }
