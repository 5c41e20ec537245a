package objects

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// Limit returns a store that moves the bodies of all Puts and Gets together at no more than the given rate, so that
// snapshots leave a network or a disk to the work itself. Zero means no limit: s itself. A nil clock is that of the system.
//
// The bytes of a body count once, however often s reads them. A store that reads a body first to compute a checksum is slowed
// in that pass and may then send in one go; the rate holds on average over a file.
func Limit(s Store, bytesPerSecond int64, clk clock.Clock) Store {
	if bytesPerSecond <= 0 {
		return s
	}
	if clk == nil {
		clk = clock.Real()
	}
	return &limited{Store: s, bucket: &bucket{clk: clk, rate: float64(bytesPerSecond)}}
}

type limited struct {
	Store
	bucket *bucket
}

func (l *limited) Put(ctx context.Context, key string, body *io.SectionReader) error {
	slow := &limitedBody{ctx: ctx, body: body, bucket: l.bucket}
	return l.Store.Put(ctx, key, io.NewSectionReader(slow, 0, body.Size()))
}

func (l *limited) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := l.Store.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	return &limitedReader{ReadCloser: r, ctx: ctx, bucket: l.bucket}, nil
}

// limitedBody slows the first reading of a body.
type limitedBody struct {
	ctx    context.Context
	body   *io.SectionReader
	bucket *bucket

	mu   sync.Mutex
	paid int64 // up to here
}

func (b *limitedBody) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.body.ReadAt(p, off)
	b.mu.Lock()
	due := max(off+int64(n)-b.paid, 0)
	b.paid += due
	b.mu.Unlock()
	if wait := b.bucket.take(b.ctx, due); wait != nil {
		return 0, wait
	}
	return n, err
}

type limitedReader struct {
	io.ReadCloser
	ctx    context.Context
	bucket *bucket
}

func (r *limitedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if wait := r.bucket.take(r.ctx, int64(n)); wait != nil && err == nil {
		err = wait
	}
	return n, err
}

// burst is how much time's worth of bytes an idle bucket holds: enough not to wait for every block.
const burst = 100 * time.Millisecond

// bucket hands out bytes at a rate. Whoever takes waits until what was taken before has been paid for, so that a block
// larger than the bucket passes too.
type bucket struct {
	clk  clock.Clock
	rate float64 // bytes per second

	mu   sync.Mutex
	free time.Time // when all that was taken is paid for
}

func (b *bucket) take(ctx context.Context, n int64) error {
	if n == 0 {
		return nil
	}
	b.mu.Lock()
	now := b.clk.Now()
	if earliest := now.Add(-burst); b.free.Before(earliest) {
		b.free = earliest
	}
	b.free = b.free.Add(time.Duration(float64(n) / b.rate * float64(time.Second)))
	wait := b.free.Sub(now)
	b.mu.Unlock()
	return pause(ctx, b.clk, wait)
}
