package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/rate"
	"github.com/tidemark/tidemark/store"
)

// noLevel is behind all levels: Pebble is about to remove such a file.
const noLevel = 99

// lazy is the state of a directory that is not complete, and the file system Pebble sees.
type lazy struct {
	vfs.FS        // the gate
	raw    vfs.FS // below it, for what is done under mu: the gate waits when the disk is full
	d      *DB
	dir    string
	o      Lazy
	chunk  int64
	clock  clock.Clock
	files  map[string]*remote

	ctx      context.Context // ends with the database, or when that becomes unusable
	cancel   context.CancelFunc
	closing  chan struct{}
	freed    sync.Once
	workers  sync.WaitGroup // in the background
	fetches  sync.WaitGroup // for reads
	complete atomic.Bool

	mu      sync.Mutex
	changed sync.Cond
	order   []*remote // by level, then as in the snapshot
	unsaved int64     // bytes fetched since the last save
	turns   turns
	saving  sync.Mutex
}

// newLazy looks at what is in the directory.
func newLazy(d *DB, o Lazy, s *lazyState) (*lazy, error) {
	l := &lazy{
		FS: d.gate, raw: d.gate.FS, d: d, dir: d.dir, o: o, chunk: s.chunk, clock: d.gate.clock,
		files: map[string]*remote{}, closing: make(chan struct{}),
	}
	l.changed.L = &l.mu
	if l.o.Rate == nil {
		l.o.Rate = rate.New(o.BytesPerSecond, l.clock)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	chunks, err := readChunks(&FS{fs: d.gate}, d.dir)
	if err != nil {
		return nil, err
	}
	for _, f := range s.files {
		r := &remote{
			LazyFile: f, l: l, level: noLevel, flights: map[int]*flight{},
			path: l.PathJoin(l.dir, f.Name), part: l.PathJoin(l.dir, partPrefix+f.Name),
			n: int((f.Size + s.chunk - 1) / s.chunk),
		}
		r.ctx, r.cancel = context.WithCancel(l.ctx)
		r.have, r.saved, r.missing = newBitmap(r.n), newBitmap(r.n), r.n
		if err := r.recall(chunks[f.Name]); err != nil {
			return nil, err
		}
		l.files[f.Name] = r
		l.order = append(l.order, r)
	}
	return l, nil
}

// recall finds out how much of the file is here.
func (r *remote) recall(saved bitmap) error {
	if _, err := r.l.FS.Stat(r.path); err == nil {
		r.done.Store(true)
		r.missing = 0
		return nil
	} else if !isNotExist(err) {
		return err
	}
	info, err := r.l.FS.Stat(r.part)
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range r.n {
		if off, length := r.chunkAt(i); i/8 < len(saved) && saved.has(i) && off+length <= info.Size() {
			r.have.set(i)
			r.saved.set(i)
			r.missing--
		}
	}
	return nil
}

// start begins to hydrate. Pebble has opened the database.
func (l *lazy) start() error {
	tables, err := l.d.pebble.SSTables()
	if err != nil {
		return classify(err)
	}
	for level, infos := range tables {
		for _, info := range infos {
			if r := l.files[fmt.Sprintf("%06d.sst", uint64(info.BackingSSTNum))]; r != nil {
				r.level = level
			}
		}
	}
	l.mu.Lock()
	slices.SortStableFunc(l.order, func(a, b *remote) int { return a.level - b.level })
	l.mu.Unlock()
	l.workers.Go(l.run)
	return nil
}

// run ends when all files are here, or the database is closed or unusable.
func (l *lazy) run() {
	l.await()
	var wg sync.WaitGroup
	for range l.o.Parallel {
		wg.Go(l.work)
	}
	wg.Wait()
	for l.ctx.Err() == nil {
		err := l.end()
		if err == nil {
			break
		}
		l.trouble(err)
	}
	l.d.place.l.grant()
	switch fatal := l.d.fatal.Load(); {
	case l.o.OnHydrated == nil:
	case fatal != nil:
		l.o.OnHydrated(*fatal)
	case l.complete.Load():
		l.o.OnHydrated(nil)
	}
}

// trouble waits for room on a full disk. After any other error the database is unusable.
func (l *lazy) trouble(err error) {
	if isFull(err) {
		sleep(l.ctx, l.clock, time.Second)
		return
	}
	if !errors.Is(err, errShut) && !errors.Is(err, store.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	l.d.die(fmt.Errorf("hydrate: %w", err))
}

// work does what is to be done next, in the background.
func (l *lazy) work() {
	for {
		t, full, more := l.take()
		var err error
		switch {
		case t != nil:
			l.fetch(t)
			l.mu.Lock()
			l.turns.background--
			l.changed.Broadcast()
			l.mu.Unlock()
			if t.full {
				sleep(l.ctx, l.clock, time.Second)
			}
		case full != nil:
			err = l.finish(full)
		case !more:
			return
		}
		if err == nil && l.wantSave() {
			err = l.save()
		}
		if err != nil {
			l.trouble(err)
		}
	}
}

// take returns chunks to fetch, or a file to finish. Neither means that there is nothing to do at present, or, without more,
// that there is nothing left. It waits for its turn before it looks: what it has picked reads may wait for.
func (l *lazy) take() (t *transfer, full *remote, more bool) {
	if full, more = l.complement(); full != nil || !more {
		return nil, full, more
	}
	pay, err := l.o.Rate.Turn(l.ctx)
	if err != nil {
		return nil, nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		pay(0)
		return nil, nil, false
	}
	if t, full = l.pick(); t == nil && full == nil {
		pay(0) // others do not wait for this database
		if l.pending() {
			l.changed.Wait()
		}
		return nil, nil, true
	}
	var bytes int64
	if t != nil {
		l.turns.background++
		bytes = int64(len(t.flights)) * l.chunk
	}
	pay(bytes)
	return t, full, true
}

// complement returns a file that has all its chunks and is to be finished, if there is one: that moves no bytes. more says
// whether there is anything left at all.
func (l *lazy) complement() (full *remote, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil || !l.pending() {
		return nil, false
	}
	for _, r := range l.order {
		if !r.gone && !r.done.Load() && !r.finishing && r.missing == 0 {
			r.finishing = true
			return r, true
		}
	}
	return nil, true
}

// pending is called under mu.
func (l *lazy) pending() bool {
	for _, r := range l.order {
		if !r.gone && !r.done.Load() {
			return true
		}
	}
	return false
}

// pick is the order of the background: files that are full, the ends of all files, level 0, where every read looks, and
// then the file that is read most.
func (l *lazy) pick() (*transfer, *remote) {
	var end, best *remote
	first := l.turns.reading(l.clock.Now())
	yields := first && l.turns.background > 0
	for _, r := range l.order {
		switch {
		case r.gone || r.done.Load() || r.finishing:
		case r.missing == 0:
			r.finishing = true
			return nil, r
		case r.missing == len(r.flights), yields:
		case !r.ended && end == nil && r.level != noLevel:
			end = r
		case best == nil, best.level != 0 && r.heat > best.heat:
			best = r
		}
	}
	if end != nil {
		end.ended = true
		for i := end.n - 1; i >= end.tail(); i-- {
			if end.free(i) {
				return end.claim(i, end.tail(), end.n), nil
			}
		}
		best = end
	}
	if best == nil {
		return nil, nil
	}
	i := 0
	for !best.free(i) {
		i++
	}
	n := l.ahead()
	if first {
		n = int(max(1, yieldBytes/l.chunk))
	}
	if rate := l.o.Rate.BytesPerSecond(); rate > 0 {
		n = int(max(1, min(int64(n), rate/4/l.chunk))) // not in bursts
	}
	return best.claim(i, i, min(best.n, i+n)), nil
}

func (l *lazy) progress() (have, total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.order {
		if r.gone {
			continue
		}
		total += r.Size
		have += r.Size - min(r.Size, int64(r.missing)*l.chunk)
	}
	return have, total
}

// stopped is why a read waits no longer. Pebble would repeat a failed read without a pause.
func (l *lazy) stopped() error {
	if l.d.closed.Load() {
		return store.ErrClosed
	}
	timer := l.clock.NewTimer(fullDiskPause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-l.closing:
	}
	if err := l.d.usable(); err != nil {
		return err
	}
	return store.ErrClosed
}

// halt frees all who wait. It is not called under mu.
func (l *lazy) halt() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Broadcast()
}

// free is halt for Close.
func (l *lazy) free() {
	l.freed.Do(func() { close(l.closing) })
	l.halt()
}

// stop is called when Pebble is closed, and nobody reads any more.
func (l *lazy) stop() error {
	l.workers.Wait()
	l.fetches.Wait()
	if l.complete.Load() || l.d.fatal.Load() != nil {
		return nil
	}
	return l.save()
}
