package s3

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/s3test"
)

// files is a database that stands still, and one that is being restored.
type files struct {
	mu      sync.Mutex
	content map[string][]byte
}

func (f *files) Files() (out []snapshot.LocalFile, err error) {
	for name, b := range f.content {
		out = append(out, snapshot.LocalFile{Name: name, Size: int64(len(b))})
	}
	return out, nil
}

func (f *files) Open(name string) (io.ReaderAt, io.Closer, error) {
	return bytes.NewReader(f.content[name]), io.NopCloser(nil), nil
}

func (f *files) Create(name string) (snapshot.Sink, error) { return &sink{f: f, name: name}, nil }

type sink struct {
	bytes.Buffer
	f    *files
	name string
}

func (s *sink) Sync() error { return nil }

func (s *sink) Close() error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.content[s.name] = s.Bytes()
	return nil
}

// Snapshots on the real server: exact, put once, found damaged whatever happens to a file on its disk, and mended by the next.
func TestSnapshotsOnServer(t *testing.T) {
	server := s3test.New(t, s3test.Options{})
	s := realStore(t, server, Options{Prefix: "snapshots"})
	ctx := t.Context()
	db := &files{content: map[string][]byte{"MANIFEST-1": []byte("m1")}}
	for i := range 6 {
		db.content[fmt.Sprintf("%06d.sst", i)] = pattern(200_000 + i)
	}
	up := snapshot.New(s, snapshot.Options{})
	head := snapshot.Manifest{App: "app", Sub: "sub", Seq: 1}
	ref, m, stats, err := up.Upload(ctx, db, head, nil, nil)
	check(t, err)
	if stats.Uploaded != 6 {
		t.Errorf("%+v", stats)
	}
	restored := func() error {
		m, err := snapshot.Load(ctx, s, ref)
		if err != nil {
			return err
		}
		back := &files{content: make(map[string][]byte)}
		if err := snapshot.Download(ctx, s, m, back, snapshot.Options{}); err != nil {
			return err
		}
		if !maps.EqualFunc(back.content, db.content, bytes.Equal) {
			t.Error("the restored database differs")
		}
		return nil
	}
	check(t, restored())

	for _, key := range []string{ref.Key, m.Object(m.Files[2])} {
		path := filepath.Join(server.DataDir(), s.opts.Bucket, "snapshots", filepath.FromSlash(key))
		whole, err := os.ReadFile(path)
		check(t, err)
		flipped := bytes.Clone(whole)
		flipped[len(flipped)/2] ^= 1
		for name, content := range map[string][]byte{"flipped": flipped, "truncated": whole[:len(whole)-1], "longer": append(whole, 0), "empty": {}} {
			check(t, os.WriteFile(path, content, 0o644))
			if err := restored(); !errors.Is(err, snapshot.ErrDamaged) {
				t.Errorf("%s %s: %v", name, key, err)
			}
			_, _, _, err := up.Upload(ctx, db, head, nil, nil)
			check(t, err)
			check(t, restored())
		}
		check(t, os.Remove(path))
		if err := restored(); !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("missing %s: %v", key, err)
		}
		_, _, _, err = up.Upload(ctx, db, head, nil, nil)
		check(t, err)
	}

	// The server goes away for good in the middle: that is an error and no damage, and what was there counts when it is back.
	n := 0
	dying := objects.WithFaults(s, nil, func(op objects.Op) objects.Fault {
		if n++; n == 3 {
			check(t, server.Kill())
		}
		return objects.Fault{}
	})
	db.content["000009.sst"] = pattern(300_000)
	head.Seq = 2
	s.opts.MaxAttempts = 2
	_, _, _, err = snapshot.New(dying, snapshot.Options{Parallel: 1}).Upload(ctx, db, head, nil, nil)
	if err == nil || errors.Is(err, snapshot.ErrDamaged) || errors.Is(err, objects.ErrNotFound) {
		t.Errorf("without a server: %v", err)
	}
	check(t, server.Restart(ctx))
	delete(db.content, "000009.sst")
	check(t, restored())
	for _, key := range list(t, s, "app/") {
		if !strings.HasPrefix(key, "app/sub/0/") {
			t.Errorf("listed %s", key)
		}
	}
}
