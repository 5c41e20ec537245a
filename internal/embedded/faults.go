package embedded

// Intercept has f judge every request from now on; nil ends that. f runs in the goroutine that
// writes the request, for several connections at a time, and must not block: it asks for a delay
// instead.
func (n *Network) Intercept(f func(Request) Verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.intercept = f
}

// Cut resets every connection of the client. It may connect again at once.
func (n *Network) Cut(client string) {
	for _, l := range n.links(client) {
		l.cut()
	}
}

// Refuse with on resets the client's connections and refuses new ones until Refuse is called with
// off.
func (n *Network) Refuse(client string, on bool) {
	n.mu.Lock()
	n.clientLocked(client).refused = on
	n.mu.Unlock()
	if on {
		n.Cut(client)
	}
}

// Freeze with on stops the bytes of the client both ways, as a lost route does: nothing fails until
// a time-out does, and dialing hangs. With off, all that was written meanwhile arrives.
func (n *Network) Freeze(client string, on bool) {
	n.mu.Lock()
	c := n.clientLocked(client)
	c.frozen = on
	// Under the lock: a link made in between would keep the old setting.
	for l := range c.links {
		l.freeze(on)
	}
	if !on {
		close(n.changed)
		n.changed = make(chan struct{})
	}
	n.mu.Unlock()
}

func (n *Network) links(client string) []*link {
	n.mu.Lock()
	defer n.mu.Unlock()
	var links []*link
	for l := range n.clientLocked(client).links {
		links = append(links, l)
	}
	return links
}
