package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// database is a checkpoint in memory, and a target.
type database struct {
	mu    sync.Mutex
	files map[string]string
	open  int // files opened and not closed
	fail  error
}

func (d *database) Files() ([]LocalFile, error) {
	var out []LocalFile
	for name, content := range d.files {
		out = append(out, LocalFile{name, int64(len(content))})
	}
	return out, d.fail
}

func (d *database) Open(name string) (io.ReaderAt, io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	return bytes.NewReader([]byte(d.files[name])), closer(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open--
	}), nil
}

type closer func()

func (c closer) Close() error { c(); return nil }

// Create counts a file only when it was synced and closed.
func (d *database) Create(name string) (Sink, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.files[name]; ok {
		return nil, fmt.Errorf("%s exists", name)
	}
	d.open++
	return &sink{db: d, name: name}, nil
}

type sink struct {
	bytes.Buffer
	db     *database
	name   string
	synced bool
}

func (s *sink) Sync() error { s.synced = true; return nil }

func (s *sink) Close() error {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	s.db.open--
	if s.synced {
		s.db.files[s.name] = s.String()
	}
	return nil
}

func newDatabase(pairs ...string) *database {
	d := &database{files: make(map[string]string)}
	for i := 0; i < len(pairs); i += 2 {
		d.files[pairs[i]] = pairs[i+1]
	}
	return d
}

var testTask = Task{"app", "orders", 3}

func head(seq uint64) Manifest {
	return Manifest{App: testTask.App, Sub: testTask.Sub, Partition: testTask.Partition, Seq: seq, Writer: 7, Created: int64(seq) * 1000}
}

// mustUpload makes a snapshot that must succeed.
func mustUpload(t *testing.T, s objects.Store, d *database, seq uint64, retained []*Manifest, memo *Memo) (Ref, *Manifest, Stats) {
	t.Helper()
	ref, m, stats, err := New(s, Options{}).Upload(t.Context(), d, head(seq), retained, memo)
	check(t, err)
	if d.open != 0 {
		t.Fatalf("%d files are still open", d.open)
	}
	return ref, m, stats
}

// restore loads and downloads a snapshot.
func restore(ctx context.Context, s objects.Store, ref Ref) (*database, error) {
	m, err := Load(ctx, s, ref)
	if err != nil {
		return nil, err
	}
	d := newDatabase()
	err = Download(ctx, s, m, d, Options{})
	if d.open != 0 {
		err = errors.Join(err, fmt.Errorf("%d files are still open", d.open))
	}
	return d, err
}

// wantRestored fails unless the snapshot restores to exactly the files of d.
func wantRestored(t *testing.T, s objects.Store, ref Ref, d *database) {
	t.Helper()
	back, err := restore(t.Context(), s, ref)
	check(t, err)
	if !maps.Equal(back.files, d.files) {
		t.Fatalf("restored %q, want %q", back.files, d.files)
	}
}

func keys(t *testing.T, s objects.Store) []string {
	t.Helper()
	return slices.Collect(func(yield func(string) bool) {
		check(t, s.List(t.Context(), "", func(i objects.Info) error { yield(i.Key); return nil }))
	})
}

// ref returns a reference of the right form.
func ref(seq uint64, kept byte) Ref {
	return Ref{Key: testTask.manifest(seq, fmt.Append(nil, seq)), Seq: seq, Created: int64(seq) * 1000, Bytes: int64(seq) * 10, Kept: kept}
}
