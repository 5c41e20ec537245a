package main

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// endTxnDialer makes connections that recognise EndTxn requests as they are written and disturb some of them:
// they hold one back, or let them pass and cut the connection before the answer can be read.
type endTxnDialer struct {
	s     *spec
	log   *zap.Logger
	seen  atomic.Int64
	since atomic.Int64 // when the first was disturbed, in ms; 0 = not yet
}

func newEndTxnDialer(s *spec, log *zap.Logger) *endTxnDialer { return &endTxnDialer{s: s, log: log} }

func (d *endTxnDialer) disturbed() bool { return d.since.Load() != 0 }

func (d *endTxnDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &endTxnConn{Conn: c, d: d}, nil
}

type endTxnConn struct {
	net.Conn
	d *endTxnDialer
}

// Write is given whole requests by the client: length, key, version.
func (c *endTxnConn) Write(b []byte) (int, error) {
	d := c.d
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b[4:])) != kmsg.EndTxn.Int16() {
		return c.Conn.Write(b)
	}
	n, now := d.seen.Add(1), time.Now().UnixMilli()
	if n == int64(d.s.EndTxnHit) {
		d.since.Store(now)
		d.log.Info("disturbing EndTxn", zap.String("how", d.s.EndTxn))
	}
	switch {
	case d.s.EndTxn == endHang && n == int64(d.s.EndTxnHit):
		time.Sleep(d.s.Hang)
	case d.s.EndTxn == endLost && d.disturbed() && now < d.since.Load()+d.s.Hang.Milliseconds():
		n, err := c.Conn.Write(b)
		time.Sleep(20 * time.Millisecond) // the broker has it
		c.Conn.Close()
		return n, err
	}
	return c.Conn.Write(b)
}
