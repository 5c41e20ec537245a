package tidemark

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/internal/rate"
	"github.com/tidemark/tidemark/internal/taskstore"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// FS is a file system for the databases; tests replace it with one in memory that can crash.
type FS = pebblestore.FS

// stores opens the databases of the tasks, under <StateDir>/<App>, or in memory without a StateDir.
type stores struct {
	dir        string // empty: in memory
	fs         *FS
	shared     *pebblestore.Shared
	log        *zap.Logger
	viewBytes  int64 // of all tasks
	layerBytes int64 // of all tasks
	rand       *rand.Rand
	tasks      *taskstore.Dir // nil: in memory
	rate       *rate.Limiter  // of everything snapshots do in the background
}

// identity is what the state directory keeps of the instance. The id must survive restarts: it is part of the
// transactional ids, so that a restart ends what the former process left open.
type identity struct {
	Version  int    `json:"version"`
	Instance string `json:"instance"`
	Workers  int    `json:"workers"`
}

const identityVersion = 1

// newStores divides the memory for state: three eighths for decoded rows, a quarter for committed rows that collect, another
// for those on their way to disk, an eighth for Pebble's block cache and memtables. What collects longer is written less
// often, and what comes and goes meanwhile, as sessions do, is not written at all: with an eighth each, sessions took a
// quarter more CPU. What reads disk blocks is mostly compaction, which a cache does not help.
func newStores(c *Config) *stores {
	s := &stores{log: c.Logger, fs: c.Testing.FS, rand: c.Testing.Rand}
	s.viewBytes = c.CacheBytes / 8 * 3
	s.layerBytes = c.CacheBytes / 4 // twice: one collects while one is written
	if c.StateDir == "" {
		return s
	}
	s.dir = filepath.Join(c.StateDir, c.App)
	if s.fs == nil {
		s.fs = pebblestore.OSFS()
	}
	s.shared = pebblestore.NewShared(pebblestore.SharedOptions{
		FS: s.fs, CacheBytes: c.CacheBytes / 8,
	})
	s.rate = rate.New(c.Snapshots.rate(), c.Testing.Clock)
	s.tasks = taskstore.New(taskstore.Options{
		Path: s.dir, FS: s.fs, Shared: s.shared, Logger: logger{s.log.Sugar()}, Rate: s.rate,
		Quiet: c.Snapshots.Store != nil, // the engine settles them
	})
	return s
}

// lockDir takes the state directory and returns the instance id kept in it.
func (s *stores) lockDir(workers int) (instance string, former int, release func(), err error) {
	if s.dir == "" {
		return s.newID(), 0, func() {}, nil
	}
	unlock, err := s.fs.LockDir(s.dir)
	if err != nil {
		if errors.Is(err, store.ErrLocked) {
			return "", 0, nil, fmt.Errorf("tidemark: %w: %s; give every process a directory of its own", ErrStateDirLocked, s.dir)
		}
		return "", 0, nil, fmt.Errorf("tidemark: state directory %s: %w", s.dir, err)
	}
	if err := s.tasks.Sweep(); err != nil {
		unlock()
		return "", 0, nil, fmt.Errorf("tidemark: state directory %s: %w", s.dir, err)
	}
	id, err := s.identity(workers)
	if err != nil {
		unlock()
		return "", 0, nil, err
	}
	return id.Instance, id.Workers, unlock, nil
}

// identity reads or makes the identity file and notes the present number of workers. The result holds the
// former number.
func (s *stores) identity(workers int) (identity, error) {
	path := filepath.Join(s.dir, "instance.json")
	id := identity{Version: identityVersion}
	b, err := s.fs.ReadFile(path)
	switch {
	case err == nil:
		if err := json.Unmarshal(b, &id); err != nil || id.Instance == "" {
			return id, fmt.Errorf("tidemark: %s is damaged; if no other process uses the directory, remove the file", path)
		}
		if id.Version != identityVersion {
			return id, fmt.Errorf("tidemark: %s has version %d, this build reads %d", path, id.Version, identityVersion)
		}
	case errors.Is(err, os.ErrNotExist):
		id.Instance = s.newID()
	default:
		return id, fmt.Errorf("tidemark: read %s: %w", path, err)
	}
	now := id
	now.Workers = workers
	if b, err = json.Marshal(now); err != nil {
		return id, fmt.Errorf("tidemark: write %s: %w", path, err)
	}
	if err := s.fs.WriteFile(path, append(b, '\n')); err != nil {
		return id, fmt.Errorf("tidemark: write %s: %w", path, err)
	}
	return id, nil
}

func (s *stores) newID() string {
	n := rand.Uint64
	if s.rand != nil {
		n = s.rand.Uint64
	}
	return fmt.Sprintf("%08x", uint32(n()))
}

func (s *stores) open(id processor.TaskID) (store.DB, error) {
	if s.tasks == nil {
		return store.NewMem(), nil
	}
	db, err := s.tasks.Open(id)
	if err != nil {
		return nil, fmt.Errorf("tidemark: %w", err)
	}
	return db, nil
}

func (s *stores) setAside(id processor.TaskID) error {
	if s.tasks == nil {
		return nil
	}
	to, err := s.tasks.SetAside(id)
	if err == nil {
		s.log.Warn("damaged database kept", zap.Stringer("task", id), zap.String("as", to))
	}
	return err
}

func (s *stores) wipe(id processor.TaskID) error {
	if s.tasks == nil {
		return nil
	}
	return s.tasks.Wipe(id)
}

func (s *stores) close() error {
	if s.shared == nil {
		return nil
	}
	return s.shared.Close()
}

// logger gives Pebble's messages to zap: what it does in normal operation at debug level.
type logger struct{ *zap.SugaredLogger }

func (l logger) Infof(format string, args ...any)  { l.Debugf(format, args...) }
func (l logger) Errorf(format string, args ...any) { l.Warnf(format, args...) }
