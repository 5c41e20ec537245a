package embedded_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
)

// frame is a request header as a client writes it, with a body of n bytes.
func frame(key int16, correlation int32, n int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+n))
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, 3)
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	return append(b, make([]byte, n)...)
}

// answer is a reply to the request with this correlation id.
func answer(correlation int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, 4)
	return binary.BigEndian.AppendUint32(b, uint32(correlation))
}

// pair returns both ends of a connection of the client "a".
func pair(t *testing.T, n *embedded.Network) (near, far net.Conn) {
	t.Helper()
	l, err := n.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	near, err = n.Dialer("a")(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far = <-accepted
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

func write(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if n, err := c.Write(b); n != len(b) || err != nil {
		t.Fatalf("write: %d of %d bytes: %v", n, len(b), err)
	}
}

func read(t *testing.T, c net.Conn, n int) {
	t.Helper()
	if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
		t.Fatalf("read %d bytes: %v", n, err)
	}
}

func TestListen(t *testing.T) {
	n := embedded.NewNetwork()
	first, err := n.Listen("tcp", "127.0.0.1:9092")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("tcp", "127.0.0.1:9092"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second listener: %v", err)
	}
	free, err := n.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if got := free.Addr().String(); got != "127.0.0.1:9093" {
		t.Errorf("free port: %s", got)
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Errorf("close twice: %v", err)
	}
	if _, err := n.Dialer("a")(t.Context(), "tcp", "127.0.0.1:9092"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial of a closed listener: %v", err)
	}
	if _, err := n.Listen("tcp", "127.0.0.1:9092"); err != nil {
		t.Errorf("listen again: %v", err)
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := pair(t, embedded.NewNetwork())
		write(t, near, frame(0, 1, 100))
		near.Close()
		read(t, far, 112)
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read after the peer closed: %v", err)
		}
		if _, err := far.Write(answer(1)); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after the peer closed: %v", err)
		}
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
		if _, err := near.Write(frame(0, 2, 0)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after close: %v", err)
		}
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := pair(t, embedded.NewNetwork())
		start := time.Now()
		near.SetReadDeadline(start.Add(time.Minute))
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		near.SetReadDeadline(time.Time{})
		write(t, far, answer(1))
		read(t, near, 8)
	})
}

func TestFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := embedded.NewNetwork()
		var seen []int16
		n.Intercept(func(r embedded.Request) embedded.Verdict {
			seen = append(seen, r.Key)
			return embedded.Verdict{}
		})
		near, far := pair(t, n)
		stream := append(frame(11, 1, 7), frame(12, 2, 0)...)
		for _, b := range stream {
			write(t, near, []byte{b})
		}
		read(t, far, len(stream))
		write(t, near, stream)
		read(t, far, len(stream))
		if len(seen) != 4 || seen[0] != 11 || seen[3] != 12 {
			t.Errorf("keys %v", seen)
		}
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := embedded.NewNetwork()
		n.Intercept(func(r embedded.Request) embedded.Verdict {
			if r.Key == kmsg.EndTxn.Int16() {
				return embedded.Verdict{Delay: 30 * time.Millisecond, ReplyDelay: 5 * time.Millisecond}
			}
			return embedded.Verdict{}
		})
		near, far := pair(t, n)
		start := time.Now()
		write(t, near, frame(kmsg.EndTxn.Int16(), 1, 0))
		write(t, near, frame(0, 2, 0)) // waits behind the first
		read(t, far, 24)
		if got := time.Since(start); got != 30*time.Millisecond {
			t.Errorf("requests arrived after %v", got)
		}
		write(t, far, answer(1))
		read(t, near, 8)
		if got := time.Since(start); got != 35*time.Millisecond {
			t.Errorf("delayed reply arrived after %v", got)
		}
		write(t, far, answer(2))
		read(t, near, 8)
		if got := time.Since(start); got != 35*time.Millisecond {
			t.Errorf("other reply arrived after %v", got)
		}
	})
}

func TestCutByVerdict(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict embedded.Verdict
		arrives bool
	}{
		{"request", embedded.Verdict{CutRequest: true}, false},
		{"reply", embedded.Verdict{CutReply: true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := embedded.NewNetwork()
				n.Intercept(func(embedded.Request) embedded.Verdict { return tt.verdict })
				near, far := pair(t, n)
				_, err := near.Write(frame(26, 1, 0))
				if arrived := err == nil; arrived != tt.arrives {
					t.Fatalf("write: %v", err)
				}
				if tt.arrives {
					read(t, far, 12)
					if _, err := far.Write(answer(1)); err == nil {
						t.Error("the reply passed")
					}
				}
				if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("client reads: %v", err)
				}
				if _, err := far.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("broker reads: %v", err)
				}
			})
		})
	}
}

func TestRefuseAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := embedded.NewNetwork()
		near, _ := pair(t, n)
		n.Cut("b")
		write(t, near, frame(0, 1, 0))
		n.Refuse("a", true)
		if _, err := near.Write(frame(0, 1, 0)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write: %v", err)
		}
		if _, err := n.Dialer("a")(t.Context(), "tcp", "127.0.0.1:9092"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
		n.Refuse("a", false)
		pair(t, n)
	})
}

func TestFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := embedded.NewNetwork()
		near, far := pair(t, n)
		start := time.Now()
		n.Freeze("a", true)
		write(t, near, frame(0, 1, 0))
		far.SetReadDeadline(start.Add(time.Second))
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read of a frozen connection: %v", err)
		}
		far.SetReadDeadline(time.Time{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dialer("a")(ctx, "tcp", "127.0.0.1:9092"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial: %v", err)
		}
		time.AfterFunc(time.Minute, func() { n.Freeze("a", false) })
		read(t, far, 12)
		if got := time.Since(start); got != time.Minute+2*time.Second {
			t.Errorf("thawed after %v", got)
		}
		pair(t, n)
	})
}
