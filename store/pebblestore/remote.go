package pebblestore

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// remote is a file of which parts are still in the remote store. What has been fetched is in a sparse file beside, the
// part, which takes the name of the file when it is complete. A handle of the part stays good then.
type remote struct {
	LazyFile
	l          *lazy
	path, part string
	n          int // chunks
	ctx        context.Context
	cancel     context.CancelFunc // the database needs the file no more
	done       atomic.Bool        // it has its own name
	syncing    sync.Mutex

	// Under l.mu:

	have      bitmap          // chunks in the part
	saved     bitmap          // those of them that survive a crash
	missing   int             // chunks not in the part
	flights   map[int]*flight // chunks being fetched
	gone      bool            // removed by the database
	finishing bool            // somebody compares the sum
	ended     bool            // its end has been asked for
	dirty     bool            // have has more than saved
	heat      int             // reads so far
	level     int
	file      vfs.File // of the part; nil while nobody uses it
	users     int      // of file
}

// longWait is when a read that waits gives the place of a compaction away.
const longWait = time.Second

// flight is a chunk on its way. Whoever wants it waits for done; then either data or err is set.
type flight struct {
	done chan struct{}
	data []byte
	err  error
}

func (r *remote) chunkAt(i int) (off, length int64) {
	off = int64(i) * r.l.chunk
	return off, min(r.l.chunk, r.Size-off)
}

// tail is the first chunk of the end of the file: the footer, the index and, if the rows are not tiny, the filter.
func (r *remote) tail() int {
	return min(r.n-1, int((r.Size-max(r.l.chunk, r.Size/32)+r.l.chunk-1)/r.l.chunk))
}

func (r *remote) free(i int) bool { return !r.have.has(i) && r.flights[i] == nil }

// claim takes free chunks around one that is free, down to lo and below hi, for a transfer.
func (r *remote) claim(at, lo, hi int) *transfer {
	first, last := at, at+1
	for first > lo && r.free(first-1) {
		first--
	}
	for last < hi && r.free(last) {
		last++
	}
	t := &transfer{r: r, first: first}
	for i := first; i < last; i++ {
		f := &flight{done: make(chan struct{})}
		r.flights[i] = f
		t.flights = append(t.flights, f)
	}
	if first <= r.tail() && last == r.n {
		r.ended = true
	}
	return t
}

// acquire opens the part, or the file, for one more user. It is called under l.mu.
func (r *remote) acquire() (f vfs.File, err error) {
	switch {
	case r.gone:
		return nil, &os.PathError{Op: "open", Path: r.path, Err: os.ErrNotExist}
	case r.file != nil:
	case r.done.Load():
		r.file, err = r.l.raw.Open(r.path, vfs.RandomReadsOption)
	default:
		r.file, err = r.l.raw.OpenReadWrite(r.part, vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		r.file = nil
		return nil, err
	}
	r.users++
	return r.file, nil
}

// release ends what acquire began. It is called under l.mu.
func (r *remote) release() {
	if r.users--; r.users == 0 {
		_ = r.file.Close() // nothing written through it counts before a sync
		r.file = nil
	}
}

// readAt implements io.ReaderAt. It waits for chunks that are not here. Who reads sequentially, as compactions do, gets more
// of them at once.
func (r *remote) readAt(file func() (vfs.File, error), p []byte, off int64, sequential bool) (int, error) {
	if off < 0 || off >= r.Size {
		return 0, io.EOF
	}
	if r.l.d.gate.shut.Load() {
		return 0, r.l.stopped()
	}
	want := int(min(int64(len(p)), r.Size-off))
	hi := int((off+int64(want)-1)/r.l.chunk) + 1
	for n := 0; n < want; {
		i := int((off + int64(n)) / r.l.chunk)
		start, length := r.chunkAt(i)
		from := off + int64(n) - start
		piece := p[n : n+int(min(length-from, int64(want-n)))]
		data, err := r.chunk(i, hi, sequential)
		if err == nil && data != nil {
			copy(piece, data[from:])
		} else if err == nil {
			var f vfs.File
			if f, err = file(); err == nil {
				_, err = f.ReadAt(piece, start+from)
			}
		}
		if err != nil {
			return n, err
		}
		n += len(piece)
	}
	if want < len(p) {
		return want, io.EOF
	}
	return want, nil
}

// chunk waits until a chunk is here and returns it, or nil if it is in the part. If it must be fetched, those behind it are
// too, up to hi.
func (r *remote) chunk(i, hi int, sequential bool) ([]byte, error) {
	if r.done.Load() {
		return nil, nil
	}
	l := r.l
	l.mu.Lock()
	r.heat++
	if r.have.has(i) {
		l.mu.Unlock()
		return nil, nil
	}
	if r.gone {
		l.mu.Unlock()
		return nil, fmt.Errorf("read %s: %w", r.path, os.ErrNotExist)
	}
	f := r.flights[i]
	if f == nil {
		if l.ctx.Err() != nil {
			l.mu.Unlock()
			return nil, l.stopped()
		}
		lo := i
		if sequential {
			hi = max(hi, i+r.l.ahead())
		}
		if i >= r.tail() && !r.ended {
			lo, hi = r.tail(), r.n
		}
		t := r.claim(i, lo, min(hi, r.n))
		f = r.flights[i]
		l.fetches.Go(func() { l.fetch(t) })
	}
	if sequential {
		l.mu.Unlock()
		return l.wait(f)
	}
	l.turns.reads++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.turns.reads--
		l.turns.last = l.clock.Now()
		l.mu.Unlock()
	}()
	return l.wait(f)
}

// wait waits for a chunk. If that takes long, a compaction of this database, which is probably the one that waits, gives its
// place to other databases meanwhile.
func (l *lazy) wait(f *flight) ([]byte, error) {
	long := l.clock.NewTimer(longWait)
	defer long.Stop()
	for {
		select {
		case <-f.done:
			return f.data, f.err
		case <-l.ctx.Done():
			return nil, l.stopped()
		case <-long.C():
			defer l.d.place.park()()
		}
	}
}
