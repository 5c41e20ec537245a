package embedded

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// pipe is one direction of a connection: an unbounded queue of byte segments, each readable from a
// moment on. Writers never block, as with a TCP peer whose window never closes; net.Pipe would block
// a client's next request while the broker holds the one before.
type pipe struct {
	clock clock.Clock

	mu       sync.Mutex
	cond     sync.Cond // on mu: any field below changed, or a moment was reached
	segments []segment
	last     time.Time // latest moment in the queue: order is kept whatever the delays
	frozen   bool
	eof      bool  // the writer is gone; what is queued can still be read
	err      error // both ends are dead; what is queued is lost
	deadline time.Time
}

type segment struct {
	at time.Time // zero: at once
	b  []byte
}

func newPipe(c clock.Clock) *pipe {
	p := &pipe{clock: c}
	p.cond.L = &p.mu
	return p
}

// write queues b, which it takes over, to be readable after delay.
func (p *pipe) write(b []byte, delay time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.eof:
		return net.ErrClosed
	case p.err == net.ErrClosed: // the reader has closed
		return syscall.EPIPE
	case p.err != nil:
		return p.err
	}
	if delay > 0 || !p.last.IsZero() {
		if at := p.clock.Now().Add(delay); at.After(p.last) {
			p.last = at
		}
	}
	p.segments = append(p.segments, segment{p.last, b})
	p.cond.Broadcast()
	return nil
}

func (p *pipe) read(dst []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.err != nil {
			return 0, p.err
		}
		now := p.clock.Now()
		if !p.deadline.IsZero() && !now.Before(p.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		wake := p.deadline
		if !p.frozen {
			if len(p.segments) == 0 && p.eof {
				return 0, io.EOF
			}
			if len(p.segments) > 0 {
				s := &p.segments[0]
				if !s.at.After(now) {
					n := copy(dst, s.b)
					if s.b = s.b[n:]; len(s.b) == 0 {
						p.segments = p.segments[1:]
					}
					return n, nil
				}
				if wake.IsZero() || s.at.Before(wake) {
					wake = s.at
				}
			}
		}
		p.wait(now, wake)
	}
}

// wait blocks until something changes or the moment has come; zero means no moment.
func (p *pipe) wait(now, moment time.Time) {
	if moment.IsZero() {
		p.cond.Wait()
		return
	}
	t := time.AfterFunc(moment.Sub(now), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cond.Broadcast()
	})
	p.cond.Wait()
	t.Stop()
}

func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.cond.Broadcast()
}

func (p *pipe) setDeadline(t time.Time) { p.change(func() { p.deadline = t }) }
func (p *pipe) freeze(on bool)          { p.change(func() { p.frozen = on }) }
func (p *pipe) finish()                 { p.change(func() { p.eof = true }) }

func (p *pipe) kill(err error) {
	p.change(func() {
		if p.err == nil {
			p.err, p.segments = err, nil
		}
	})
}
