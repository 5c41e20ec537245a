package system

import (
	"context"
	"encoding/binary"
	"net"
	"time"
)

// endTxn is the number of the request that ends a transaction.
const endTxn = 26

// slowEnds dials connections on which requests that end a transaction are held back.
func slowEnds(delay time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return slowConn{c, delay}, nil
	}
}

type slowConn struct {
	net.Conn
	delay time.Duration
}

// Write takes one whole request: its size in four bytes, then its number in two.
func (c slowConn) Write(b []byte) (int, error) {
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == endTxn {
		time.Sleep(c.delay)
	}
	return c.Conn.Write(b)
}
