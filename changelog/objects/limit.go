package objects

import (
	"context"
	"io"
	"sync"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/rate"
)

// Limit returns a store that moves the bodies of all Puts and Gets together at no more than the given rate, so that
// snapshots leave a network or a disk to the work itself. Zero means no limit: s itself. A nil clock is that of the system.
//
// The bytes of a body count once, however often s reads them. A store that reads a body first to compute a checksum is slowed
// in that pass and may then send in one go; the rate holds on average over a file.
func Limit(s Store, bytesPerSecond int64, clk clock.Clock) Store {
	l := rate.New(bytesPerSecond, clk)
	if l == nil {
		return s
	}
	return &limited{s, l.Take}
}

// LimitPuts returns a store that asks take before it moves bytes of the body of a Put, as Limit does; Gets are not bounded.
// take waits until n bytes more may be moved.
func LimitPuts(s Store, take func(ctx context.Context, n int64) error) Store {
	return &limitedPuts{s, &limited{s, take}}
}

type limitedPuts struct {
	Store
	limited *limited
}

func (l *limitedPuts) Put(ctx context.Context, key string, body *io.SectionReader) error {
	return l.limited.Put(ctx, key, body)
}

type limited struct {
	Store
	take func(ctx context.Context, n int64) error
}

func (l *limited) Put(ctx context.Context, key string, body *io.SectionReader) error {
	slow := &limitedBody{ctx: ctx, body: body, take: l.take}
	return l.Store.Put(ctx, key, io.NewSectionReader(slow, 0, body.Size()))
}

func (l *limited) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := l.Store.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	return &limitedReader{ReadCloser: r, ctx: ctx, take: l.take}, nil
}

// limitedBody slows the first reading of a body.
type limitedBody struct {
	ctx  context.Context
	body *io.SectionReader
	take func(ctx context.Context, n int64) error

	mu   sync.Mutex
	paid int64 // up to here
}

func (b *limitedBody) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.body.ReadAt(p, off)
	b.mu.Lock()
	due := max(off+int64(n)-b.paid, 0)
	b.paid += due
	b.mu.Unlock()
	if wait := b.take(b.ctx, due); wait != nil {
		return 0, wait
	}
	return n, err
}

type limitedReader struct {
	io.ReadCloser
	ctx  context.Context
	take func(ctx context.Context, n int64) error
}

func (r *limitedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if wait := r.take(r.ctx, int64(n)); wait != nil && err == nil {
		err = wait
	}
	return n, err
}
