package pebblestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/store"
)

// cloud is a remote store with the files of one snapshot.
type cloud struct {
	files   []LazyFile
	latency time.Duration
	// perSecond is the speed of one body in bytes; 0: it takes no time.
	perSecond float64

	mu       sync.Mutex
	objects  map[string][]byte
	rng      *rand.Rand // nil: no faults
	down     bool       // every request fails
	gate     chan struct{}
	requests int
	bytes    int64
	fetched  map[string]map[int64]int // file, offset of a chunk: how often it was asked for
	chunk    int64
}

var errDown = errors.New("503 slow down")

// upload takes a checkpoint and removes it.
func upload(t testing.TB, db *DB, dir string) *cloud {
	t.Helper()
	cp := mustCheckpoint(t, db, dir)
	c := &cloud{objects: map[string][]byte{}, fetched: map[string]map[int64]int{}, chunk: 256 << 10}
	files, err := cp.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b := content(t, cp, f)
		if !isTableName(f.Name) {
			c.files = append(c.files, LazyFile{Name: f.Name, Size: f.Size, Data: b})
			continue
		}
		c.files = append(c.files, LazyFile{Name: f.Name, Size: f.Size, Sum: sha256.Sum256(b)})
		c.objects[f.Name] = b
	}
	if err := cp.Remove(); err != nil {
		t.Fatal(err)
	}
	return c
}

// tables are the names of the objects.
func (c *cloud) tables() []string {
	var names []string
	for name := range c.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *cloud) lazy() Lazy {
	return Lazy{Identity: "snapshot-1", Files: c.files, Fetch: c.fetch, ChunkBytes: c.chunk}
}

func (c *cloud) set(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
}

// asked is the number of requests so far.
func (c *cloud) asked() (n int) {
	c.set(func() { n = c.requests })
	return n
}

func (c *cloud) roll(n int) int {
	if c.rng == nil {
		return n
	}
	return c.rng.IntN(n)
}

func (c *cloud) fetch(ctx context.Context, file LazyFile, offset, length int64) (io.ReadCloser, error) {
	c.mu.Lock()
	c.requests++
	latency, down, gate := c.latency, c.down, c.gate
	object, ok := c.objects[file.Name]
	fail := c.roll(8) == 0
	body := &cloudBody{ctx: ctx, c: c, end: io.EOF}
	if c.rng != nil {
		latency += time.Duration(c.rng.IntN(50)) * time.Millisecond
	}
	cut := c.roll(4) == 0
	if cut {
		body.end = []error{io.EOF, io.ErrUnexpectedEOF, errors.New("connection reset")}[c.rng.IntN(3)]
	}
	if !down && !fail {
		if c.fetched[file.Name] == nil {
			c.fetched[file.Name] = map[int64]int{}
		}
		for at := offset / c.chunk; at*c.chunk < offset+length; at++ {
			c.fetched[file.Name][at]++
		}
	}
	c.mu.Unlock()
	if offset < 0 || length <= 0 || offset+length > file.Size {
		return nil, fmt.Errorf("range %d+%d of %d: %w", offset, length, file.Size, store.ErrCorrupt)
	}
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case down || fail:
		return nil, errDown
	case !ok:
		return nil, fmt.Errorf("no such key: %w", fs.ErrNotExist)
	}
	end := min(offset+length, int64(len(object)))
	part := object[min(offset, end):end]
	if cut {
		c.set(func() { part = part[:c.rng.IntN(len(part)+1)] })
	}
	body.Reader = *bytes.NewReader(part)
	return body, nil
}

type cloudBody struct {
	bytes.Reader
	ctx context.Context
	c   *cloud
	end error
}

func (b *cloudBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.Reader.Read(p[:min(len(p), 64<<10)])
	if b.c.perSecond > 0 {
		<-time.After(time.Duration(float64(n) / b.c.perSecond * 1e9))
	}
	b.c.set(func() { b.c.bytes += int64(n) })
	if err == io.EOF {
		err = b.end
	}
	return n, err
}

func (b *cloudBody) Close() error { return nil }

// hydrated receives what OnHydrated is told.
func hydrated(l *Lazy) <-chan error {
	told := make(chan error, 10)
	l.OnHydrated = func(err error) { told <- err }
	return told
}

func mustOpenLazy(t testing.TB, dir string, o Options, l Lazy) *DB {
	t.Helper()
	db, err := OpenLazy(dir, o, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // so that a bubble ends when a test fails
	return db
}

// bigRows is a run of rows whose values do not compress.
type bigRows struct {
	n, at, size int
	rng         *rand.Rand
	value       []byte
}

func (r *bigRows) Next() bool {
	r.at++
	r.value = make([]byte, r.size)
	for i := range r.value {
		r.value[i] = byte(r.rng.Uint32())
	}
	return r.at <= r.n
}
func (r *bigRows) Key() []byte   { return fmt.Appendf(nil, "key%05d", r.at-1) }
func (r *bigRows) Value() []byte { return r.value }
func (r *bigRows) End() []byte   { return nil }
