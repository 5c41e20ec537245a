package embedded

import (
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// link is one connection: a pipe each way and the verdicts whose replies are still to come.
type link struct {
	network  *Network
	client   *client
	requests *pipe // client to broker
	replies  *pipe // broker to client

	mu      sync.Mutex
	pending map[int32]Verdict // by correlation id
}

func newLink(n *Network, c *client) *link {
	return &link{network: n, client: c, requests: newPipe(clock.Real()), replies: newPipe(clock.Real()), pending: map[int32]Verdict{}}
}

func (l *link) freeze(on bool) {
	l.requests.freeze(on)
	l.replies.freeze(on)
}

// cut makes both ends fail at once, as a reset does.
func (l *link) cut() {
	l.requests.kill(syscall.ECONNRESET)
	l.replies.kill(syscall.ECONNRESET)
	l.network.forget(l)
}

// request passes one whole frame on to the broker.
func (l *link) request(frame []byte, broker net.Addr) error {
	var v Verdict
	if r, ok := parseHeader(frame); ok {
		r.Client, r.Broker = l.client.name, broker.String()
		v = l.network.judge(r)
		if v.CutReply || v.ReplyDelay > 0 {
			l.mu.Lock()
			l.pending[r.correlation] = v
			l.mu.Unlock()
		}
	}
	if v.CutRequest {
		l.cut()
		return syscall.ECONNRESET
	}
	return l.requests.write(frame, v.Delay)
}

// reply passes one whole frame on to the client.
func (l *link) reply(frame []byte) error {
	var v Verdict
	if len(frame) >= 8 {
		id := int32(binary.BigEndian.Uint32(frame[4:]))
		l.mu.Lock()
		v = l.pending[id]
		delete(l.pending, id)
		l.mu.Unlock()
	}
	if v.CutReply {
		l.cut()
		return syscall.ECONNRESET
	}
	return l.replies.write(frame, v.ReplyDelay)
}

// conn is one end of a link. Reads and writes may run concurrently; writes may not run concurrently
// with each other.
type conn struct {
	link          *link
	in, out       *pipe
	send          func(frame []byte) error
	partial       []byte // head of a frame whose rest is still to be written
	local, remote net.Addr
}

// Write hands on every frame that is complete: a 4-byte length and that many bytes.
func (c *conn) Write(b []byte) (int, error) {
	c.partial = append(c.partial, b...)
	for len(c.partial) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(c.partial))
		if len(c.partial) < size {
			break
		}
		frame := c.partial[:size:size]
		if c.partial = c.partial[size:]; len(c.partial) == 0 {
			c.partial = nil // frame now belongs to the pipe
		}
		if err := c.send(frame); err != nil {
			return 0, c.fail("write", err)
		}
	}
	return len(b), nil
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.fail("read", err)
}

// Close ends both directions: the peer reads what is queued and then io.EOF.
func (c *conn) Close() error {
	c.out.finish()
	c.in.kill(net.ErrClosed)
	c.link.network.forget(c.link)
	return nil
}

// fail dresses resets as the net package does; io.EOF and time-outs stay recognizable as they are.
func (c *conn) fail(op string, err error) error {
	if _, ok := err.(syscall.Errno); ok {
		return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
	}
	return err
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error     { return c.SetReadDeadline(t) }
func (c *conn) SetReadDeadline(t time.Time) error { c.in.setDeadline(t); return nil }

// SetWriteDeadline does nothing: writes do not block.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
