package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// atlas is what the client knows of the app: the stores, and which instance runs which task. It does not change.
type atlas struct {
	stores map[string]*apiv1.Store
	hosts  *apiv1.GetHostsResponse
	from   string // the instance that told
	at     time.Time
	asked  time.Time // when an instance was last asked for a newer one
}

// task returns the task that has a key, or a partition of a store. ok is false as long as that is not known.
func (a *atlas) task(store string, key []byte, partition *int32) (t query.Task, ok bool) {
	s := a.stores[store]
	switch {
	case s == nil:
		return t, false
	case partition != nil:
		return query.Task{Sub: s.Sub, Partition: *partition}, true
	case key == nil || s.GetPartitions() <= 0:
		return t, false
	}
	return query.Task{Sub: s.Sub, Partition: processor.PartitionOf(key, s.GetPartitions())}, true
}

// owner returns the endpoint of the instance that runs a task, empty if there is none.
func (a *atlas) owner(t query.Task) string {
	owners := a.hosts.GetOwners()[t.Sub].GetHosts()
	if t.Partition < 0 || int(t.Partition) >= len(owners) {
		return ""
	}
	i, hosts := owners[t.Partition], a.hosts.GetHosts()
	if i < 0 || int(i) >= len(hosts) {
		return ""
	}
	return hosts[i].GetEndpoint()
}

// self returns the id of the instance that has told a map.
func self(m *apiv1.GetHostsResponse) string {
	if m == nil || m.Self == nil || *m.Self < 0 || int(*m.Self) >= len(m.Hosts) {
		return ""
	}
	return m.Hosts[*m.Self].GetInstance()
}

// replaces says whether an atlas takes the place of another. A lower generation is older, unless the group began anew: then
// the instance that told the higher one tells the lower one, or nobody tells the higher one for long.
func (a *atlas) replaces(old *atlas) bool {
	return old == nil || a.hosts.GetGeneration() >= old.hosts.GetGeneration() ||
		a.from != "" && a.from == old.from || a.at.Sub(old.at) > atlasAge
}

const (
	// atlasAge is for how long a map of a later generation is kept although instances tell an earlier one.
	atlasAge = 10 * time.Second
	// atlasPause is how long the map is good although it was doubted: many callers may doubt the same map at a time.
	atlasPause = 50 * time.Millisecond
)

// keeper keeps the newest atlas and looks for a new one when it is doubted.
type keeper struct {
	now  atomic.Pointer[atlas]
	turn chan struct{} // holds a token while nobody looks
	// doubt is not nil when the atlas was found wrong; it holds the endpoint that knew better, or nothing.
	doubt atomic.Pointer[string]
}

func newKeeper() *keeper {
	k := &keeper{turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// wrong notes that the atlas was found wrong, and who knows better.
func (k *keeper) wrong(hint string) { k.doubt.Store(&hint) }

// atlas returns the present atlas. The first caller after a doubt asks for a new one, and the others wait for it. Only
// without any atlas there is an error.
func (c *Client) atlas(ctx context.Context) (*atlas, *failure) {
	k := c.keeper
	good := func() *atlas {
		a := k.now.Load()
		if a == nil || k.doubt.Load() != nil && c.clock.Now().Sub(a.asked) >= atlasPause {
			return nil
		}
		return a
	}
	if a := good(); a != nil {
		return a, nil
	}
	select {
	case <-k.turn:
	case <-ctx.Done():
		return nil, &failure{Error: over(ctx, nil, 0)}
	}
	defer func() { k.turn <- struct{}{} }()
	if a := good(); a != nil {
		return a, nil
	}
	var hint string
	if p := k.doubt.Swap(nil); p != nil {
		hint = *p
	}
	a, f := c.survey(ctx, hint)
	old := k.now.Load()
	if f != nil {
		k.wrong("")
		if old != nil {
			return old, nil
		}
		return nil, f
	}
	if !a.replaces(old) {
		// What was known is newer than what was told. The next doubt asks again.
		fresh := *old
		fresh.stores, fresh.asked = a.stores, a.asked
		a = &fresh
	}
	k.now.Store(a)
	c.pool.keep(c.known(a))
	return a, nil
}

// describe returns a store, nil if it is not known. If it is not, or its partitions are not counted yet, the app is asked
// again, once.
func (c *Client) describe(ctx context.Context, name string) (*apiv1.Store, error) {
	a, err := c.patient(ctx)
	if err != nil {
		return nil, err
	}
	if a.stores[name].GetPartitions() <= 0 {
		c.keeper.wrong("")
		if a, err = c.patient(ctx); err != nil {
			return nil, err
		}
	}
	return a.stores[name], nil
}

// patient is atlas that goes on asking until the deadline.
func (c *Client) patient(ctx context.Context) (*atlas, error) {
	var pause time.Duration
	for n := 1; ; n++ {
		a, f := c.atlas(ctx)
		switch {
		case f == nil:
			return a, nil
		case !f.again():
			return nil, f.err()
		case !c.wait(ctx, &pause):
			return nil, over(ctx, f, n)
		}
	}
}

// surveyTimeout bounds how long one instance may take to tell an atlas, so that one that hangs does not cost the question.
const surveyTimeout = time.Second

// survey asks one instance after the other for an atlas, the one of the hint first, until one answers.
func (c *Client) survey(ctx context.Context, hint string) (*atlas, *failure) {
	var last *failure
	for _, endpoint := range c.candidates(hint) {
		a, f := c.tell(ctx, endpoint)
		if f == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return nil, &failure{Error: over(ctx, last, 1)}
		}
		if last = f; f.Reason == query.Deadline {
			c.pool.mark(endpoint, c.clock.Now(), false)
			f.Reason = query.NoOwner // for now: others may answer
		}
		if !f.again() {
			break
		}
	}
	return nil, last
}

// tell asks one instance for an atlas.
func (c *Client) tell(ctx context.Context, endpoint string) (*atlas, *failure) {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	now := c.clock.Now()
	a := &atlas{stores: map[string]*apiv1.Store{}, at: now, asked: now}
	f := c.once(ctx, endpoint, func(q apiv1.QueriesClient) (err error) {
		if a.hosts, err = q.GetHosts(ctx, &apiv1.GetHostsRequest{}); err != nil {
			return err
		}
		list, err := q.ListStores(ctx, &apiv1.ListStoresRequest{})
		for _, s := range list.GetStores() {
			a.stores[s.Id] = s
		}
		return err
	})
	a.from = self(a.hosts)
	return a, f
}

// known are the endpoints to which connections are kept.
func (c *Client) known(a *atlas) map[string]bool {
	out := map[string]bool{}
	for _, e := range c.cfg.Endpoints {
		out[e] = true
	}
	for _, h := range a.hosts.GetHosts() {
		out[h.Endpoint] = true
	}
	return out
}
