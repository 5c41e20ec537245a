package embedded

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Network connects clients and brokers in memory. Its connections wait on condition variables and
// timers only, so that all of it may run in a testing/synctest bubble. Faults are set per client
// (Cut, Refuse, Freeze) or per request (Intercept). It carries Kafka's framed requests, not TLS.
//
// All methods are safe for concurrent use; none starts a goroutine.
type Network struct {
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when a client is thawed
	listeners map[string]*listener
	clients   map[string]*client
	nextPort  int
	intercept func(Request) Verdict
}

type client struct {
	name            string
	refused, frozen bool
	links           map[*link]struct{}
}

// NewNetwork returns a network without listeners. Inside a bubble it must be made in the bubble.
func NewNetwork() *Network {
	return &Network{
		changed:   make(chan struct{}),
		listeners: map[string]*listener{},
		clients:   map[string]*client{},
		nextPort:  9092,
	}
}

// Listen is for Options.ListenFn. Port 0 takes the next free port from 9092 on; an address in use
// is an error that wraps syscall.EADDRINUSE.
func (n *Network) Listen(_, address string) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("embedded: listen: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for addr.Port == 0 {
		candidate := net.TCPAddr{IP: addr.IP, Port: n.nextPort}
		n.nextPort++
		if n.listeners[candidate.String()] == nil {
			addr.Port = candidate.Port
		}
	}
	if n.listeners[addr.String()] != nil {
		return nil, fmt.Errorf("embedded: listen on %s: %w", addr, syscall.EADDRINUSE)
	}
	l := &listener{network: n, addr: addr, queue: make(chan *conn), done: make(chan struct{})}
	n.listeners[addr.String()] = l
	return l, nil
}

// Dialer returns a dial function for kgo.Dialer whose connections belong to the named client.
// Several kgo clients may share a name; the faults then hit all of them.
func (n *Network) Dialer(client string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		return n.dial(ctx, client, address)
	}
}

func (n *Network) dial(ctx context.Context, name, address string) (net.Conn, error) {
	for {
		l, server, thawed, err := n.connect(name, address)
		if err != nil {
			return nil, err
		}
		if l == nil {
			select {
			case <-thawed:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
		near := &conn{link: l, in: l.replies, out: l.requests, local: local, remote: server.addr}
		near.send = func(frame []byte) error { return l.request(frame, server.addr) }
		far := &conn{link: l, in: l.requests, out: l.replies, send: l.reply, local: server.addr, remote: local}
		select {
		case server.queue <- far:
			return near, nil
		case <-server.done:
			n.forget(l)
			return nil, refused(server.addr)
		case <-ctx.Done():
			n.forget(l)
			return nil, ctx.Err()
		}
	}
}

// connect makes a link for the client, or returns the channel that tells when to try again.
func (n *Network) connect(name, address string) (l *link, server *listener, thawed <-chan struct{}, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.clientLocked(name)
	if c.frozen {
		return nil, nil, n.changed, nil
	}
	server = n.listeners[address]
	if server == nil || c.refused {
		return nil, nil, nil, refused(addrString(address))
	}
	l = newLink(n, c)
	c.links[l] = struct{}{}
	return l, server, nil, nil
}

func (n *Network) clientLocked(name string) *client {
	c := n.clients[name]
	if c == nil {
		c = &client{name: name, links: map[*link]struct{}{}}
		n.clients[name] = c
	}
	return c
}

func (n *Network) forget(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(l.client.links, l)
}

func (n *Network) judge(r Request) Verdict {
	n.mu.Lock()
	f := n.intercept
	n.mu.Unlock()
	if f == nil {
		return Verdict{}
	}
	return f(r)
}

func refused(addr net.Addr) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: syscall.ECONNREFUSED}
}

type addrString string

func (addrString) Network() string  { return "tcp" }
func (a addrString) String() string { return string(a) }
