package objects

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// Mem keeps objects in memory, for tests and for trying things out.
type Mem struct {
	clk clock.Clock

	mu      sync.Mutex
	objects map[string]memObject
}

type memObject struct {
	data     []byte // never changed
	modified time.Time
}

// NewMem returns an empty store.
func NewMem() *Mem { return &Mem{clk: clock.Real(), objects: make(map[string]memObject)} }

// Put implements Store.
func (m *Mem) Put(ctx context.Context, key string, body *io.SectionReader) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	data, err := readBody(ctx, body)
	if err != nil {
		return fmt.Errorf("objects: put %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = memObject{data, m.clk.Now()}
	return nil
}

// Get implements Store.
func (m *Mem) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := checkRange(key, offset); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("objects: get %s: %w", key, err)
	}
	m.mu.Lock()
	o, ok := m.objects[key]
	m.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("objects: get %s: %w", key, ErrNotFound)
	}
	size := int64(len(o.data))
	offset = min(offset, size)
	if length < 0 || length > size-offset {
		length = size - offset
	}
	return &memReader{ctx: ctx, b: bytes.NewReader(o.data[offset : offset+length])}, nil
}

// memReader ends with its context, as a reader from a network does.
type memReader struct {
	ctx context.Context
	b   *bytes.Reader
}

func (r *memReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.b.Read(p)
}

func (r *memReader) Close() error { return nil }

// List implements Store.
func (m *Mem) List(ctx context.Context, prefix string, fn func(Info) error) error {
	if err := checkPrefix(prefix); err != nil {
		return err
	}
	m.mu.Lock()
	objects := maps.Clone(m.objects)
	m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("objects: list %q: %w", prefix, err)
		}
		if err := fn(Info{key, int64(len(objects[key].data)), objects[key].modified}); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements Store.
func (m *Mem) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("objects: delete: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.objects, key)
	}
	return nil
}
