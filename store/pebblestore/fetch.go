package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/store"
)

const (
	// readAhead is how much is fetched at once for a compaction, and in the background.
	readAhead = 4 << 20

	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// maxEmpty is how many bodies in a row may end where they should begin before the object is taken for too short.
	maxEmpty = 10
)

// transfer brings neighbouring chunks of a file. One goroutine fetches it.
type transfer struct {
	r       *remote
	first   int
	flights []*flight // of the chunks from first on
	next    int       // index in flights of the chunk that is coming
	buf     []byte    // that chunk, as far as it is here
	filled  int
	file    vfs.File // where chunks go; nil if the disk has no room for a new file
	full    bool     // a chunk could not be kept
}

// ahead is readAhead in chunks.
func (l *lazy) ahead() int { return int(max(1, readAhead/l.chunk)) }

// fetch lands every chunk of t or fails its flight.
func (l *lazy) fetch(t *transfer) {
	r := t.r
	l.mu.Lock()
	file, err := r.acquire()
	l.mu.Unlock()
	switch {
	case err == nil:
		t.file = file
		defer func() {
			l.mu.Lock()
			r.release()
			l.mu.Unlock()
		}()
	case isFull(err):
		t.full = true
	case isNotExist(err): // gone
		t.fail(err)
		return
	default:
		err = fmt.Errorf("%w: %w", store.ErrStorage, err)
		t.fail(err)
		l.d.die(err)
		return
	}
	for pause, empty := firstPause, 0; ; pause = min(2*pause, lastPause) {
		n, err := t.attempt(r.ctx)
		if err == nil {
			return
		}
		if r.ctx.Err() != nil {
			err = fs.ErrNotExist
			if l.ctx.Err() != nil {
				err = l.stopped()
			}
			t.fail(err)
			return
		}
		switch short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); {
		case n > 0:
			pause, empty = firstPause, 0
		case short:
			if empty++; empty == maxEmpty {
				err = fmt.Errorf("%w: it ends at %d of %d bytes", store.ErrCorrupt, t.offset(), r.Size)
			}
		default:
			empty = 0
		}
		if isFinal(err) {
			if !errors.Is(err, store.ErrCorrupt) {
				err = fmt.Errorf("%w: %w", store.ErrCorrupt, err)
			}
			err = fmt.Errorf("fetch %s: %w", r.Name, err)
			l.d.die(err)
			t.fail(err)
			return
		}
		(*logger)(l.d).Errorf("fetch %s at %d: %v; next attempt in %v", r.Name, t.offset(), err, pause)
		sleep(r.ctx, l.clock, pause)
	}
}

// isFinal tells what no repetition mends. A failure of the disk here is not one of the remote store.
func isFinal(err error) bool { return errors.Is(err, store.ErrCorrupt) || isNotExist(err) }

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// sleep returns early when ctx ends.
func sleep(ctx context.Context, c clock.Clock, d time.Duration) {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// offset is where the next byte of the transfer belongs.
func (t *transfer) offset() int64 { return int64(t.first+t.next)*t.r.l.chunk + int64(t.filled) }

// attempt asks for what is missing and returns how many bytes came. A nil error means that nothing is missing any more.
func (t *transfer) attempt(ctx context.Context) (n int64, err error) {
	r := t.r
	lastOff, lastLen := r.chunkAt(t.first + len(t.flights) - 1)
	body, err := r.l.o.Fetch(ctx, r.LazyFile, t.offset(), lastOff+lastLen-t.offset())
	if err != nil {
		return 0, err
	}
	defer body.Close() // it is read to the end or of no more use
	for t.next < len(t.flights) {
		if t.buf == nil {
			_, length := r.chunkAt(t.first + t.next)
			t.buf, t.filled = make([]byte, length), 0
		}
		got, err := io.ReadFull(body, t.buf[t.filled:])
		t.filled += got
		n += int64(got)
		if err != nil {
			return n, err
		}
		t.land()
	}
	return n, nil
}

// land keeps the chunk that is complete and hands it to those who wait.
func (t *transfer) land() {
	r, l := t.r, t.r.l
	i := t.first + t.next
	off, length := r.chunkAt(i)
	err := l.d.gate.check()
	if err == nil && t.file == nil {
		err = syscall.ENOSPC
	}
	if err == nil {
		_, err = t.file.WriteAt(t.buf, off)
	}
	l.mu.Lock()
	if err == nil {
		r.have.set(i)
		r.missing--
		r.dirty = true
		l.unsaved += length
	}
	f := t.flights[t.next]
	delete(r.flights, i)
	f.data = t.buf
	close(f.done)
	l.changed.Broadcast()
	l.mu.Unlock()
	t.buf, t.filled = nil, 0
	t.next++
	switch {
	case err == nil:
	case isFull(err), errors.Is(err, errShut):
		t.full = true // whoever waits has it, and it is fetched again when there is room
	default:
		l.d.die(fmt.Errorf("%w: %w", store.ErrStorage, err))
	}
}

// fail hands err to those who wait for what has not landed.
func (t *transfer) fail(err error) {
	l := t.r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; t.next < len(t.flights); t.next++ {
		f := t.flights[t.next]
		delete(t.r.flights, t.first+t.next)
		f.err = err
		close(f.done)
	}
	l.changed.Broadcast()
}
