package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark/tidemark/bench/internal/workload"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// queryResult is one phase of a run: two instances that share W2 at a fixed rate, asked at another fixed rate.
type queryResult struct {
	Kind     string    `json:"kind"`
	Phase    string    `json:"phase"`
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"seconds"`
	Offered  int       `json:"offered_records_per_s"`
	Rate     float64   `json:"records_per_s"`
	CPU      float64   `json:"cpu_s_per_m"` // of both instances, per million records
	RSS      float64   `json:"peak_rss_mb"` // of the larger
	Foreign  float64   `json:"foreign_cores"`
	Asked    int       `json:"asked_per_s"`
	Local    latency   `json:"local"`
	Forward  latency   `json:"forwarded"`
	Scans    latency   `json:"scans"`
	Watchers int       `json:"watchers"`
	// Of a plain gRPC service in the same instances, asked at the same time.
	PlainLocal   latency `json:"plain_local"`
	PlainForward latency `json:"plain_forwarded"`
}

// queryOptions are the flags of bench queries.
type queryOptions struct {
	options
	rate, gets, scans, watchers int
	last                        time.Duration
}

// queries measures W8.
func queries(ctx context.Context, args []string) error {
	var o queryOptions
	f := o.common("bench queries")
	f.IntVar(&o.rate, "rate", 0, "records a second; 0: half of what one instance processes, measured first")
	f.IntVar(&o.gets, "gets", 2000, "point gets a second: half asked of the owner, half of the other instance")
	f.IntVar(&o.scans, "scans", 50, "scans of 100 rows a second")
	f.IntVar(&o.watchers, "watchers", 10_000, "watches of keys that do not change, in the last phase")
	f.DurationVar(&o.last, "for", 20*time.Second, "length of each phase")
	if err := f.Parse(args); err != nil {
		return err
	}
	b, done, err := open(ctx, o.options)
	if err != nil {
		return err
	}
	defer done()
	s, err := workload.Find("W2")
	if err != nil {
		return err
	}
	if o.rate == 0 {
		n := max(o.records, 2_000_000)
		if err := b.load(ctx, s, n); err != nil {
			return err
		}
		r, err := b.measure(ctx, "tidemark", s, n, variant{commitMs: 100})
		if err != nil {
			return err
		}
		o.rate = int(r.Rate / 2)
		fmt.Fprintf(os.Stderr, "one instance processes %.0f records a second, the phases run at half of that\n", r.Rate)
	}
	return b.phases(ctx, o, s)
}

// phases runs both instances and the phases one after the other.
func (b *bench) phases(ctx context.Context, o queryOptions, s workload.Spec) error {
	if err := b.recreate(ctx, s.Input()); err != nil {
		return err
	}
	if err := b.reset(ctx, "bench-queries", s.Output()); err != nil {
		return err
	}
	q := &queryRun{bench: b, o: o, spec: s}
	defer q.stop()
	for range 2 {
		for _, addrs := range []*[]string{&q.addrs, &q.plain} {
			addr, err := freeAddress()
			if err != nil {
				return err
			}
			*addrs = append(*addrs, addr)
		}
	}
	for i, addr := range q.addrs {
		args := []string{"system", "-bootstrap", b.addr, "-group", "bench-queries", "-state", filepath.Join(b.work, fmt.Sprint("queries", i)), "-w", s.Name, "-workers", "1", "-serve", addr,
			"-plain", q.plain[i], "-plain-peer", q.plain[1-i]}
		if b.profiles != "" {
			args = append(args, "-cpuprofile", filepath.Join(b.profiles, fmt.Sprintf("queries%d.prof", i)))
		}
		if err := q.start(ctx, args); err != nil {
			return err
		}
	}
	loading, stopLoading := context.WithCancel(ctx)
	var loader sync.WaitGroup
	defer loader.Wait()
	defer stopLoading()
	loader.Go(func() {
		if err := workload.Update(loading, b.addr, s, workload.Updates{Rate: o.rate, Seed: b.seed}); err != nil && loading.Err() == nil {
			fmt.Fprintln(os.Stderr, "load:", err)
		}
	})
	if err := q.connect(ctx); err != nil {
		return err
	}
	if err := wait(ctx, o.last/2); err != nil { // warm-up
		return err
	}
	var all []queryResult
	for _, p := range []struct {
		name     string
		ask      func(context.Context, *queryResult)
		watching bool
	}{
		{"no queries", nil, false}, {"a plain gRPC service asked", q.askPlain, false}, {"queries", q.ask, false},
		{"queries and idle watchers", q.ask, true}, {"no queries again", nil, false},
	} {
		r, err := q.phase(ctx, p.name, p.ask, p.watching)
		if err != nil {
			return err
		}
		if err := emit(r, b.out); err != nil {
			return err
		}
		all = append(all, *r)
	}
	printQueries(all)
	return nil
}

// queryRun is both instances and what is known of them.
type queryRun struct {
	*bench
	o         queryOptions
	spec      workload.Spec
	children  []*child
	addrs     []string
	plain     []string // addresses of the plain services in both
	processed [2]int64
	mu        sync.Mutex
	clients   []apiv1.QueriesClient
	plainly   []apiv1.QueriesClient
	owner     []int // by partition: which of the two
}

func (q *queryRun) start(ctx context.Context, args []string) error {
	c, err := start(ctx, args, nil)
	if err != nil {
		return err
	}
	i := len(q.children)
	q.children = append(q.children, c)
	go func() { // ends with the child's output
		for n := range c.progress {
			q.mu.Lock()
			q.processed[i] = n
			q.mu.Unlock()
		}
	}()
	return nil
}

func (q *queryRun) stop() {
	for _, c := range q.children {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		_ = c.cmd.Wait()
	}
}

// connect waits until the two share the tasks, and notes who has which.
func (q *queryRun) connect(ctx context.Context) error {
	for i := range q.addrs {
		for addr, to := range map[string]*[]apiv1.QueriesClient{q.addrs[i]: &q.clients, q.plain[i]: &q.plainly} {
			conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				return err
			}
			*to = append(*to, apiv1.NewQueriesClient(conn))
		}
	}
	return retry(ctx, func() error {
		h, err := q.clients[0].GetHosts(ctx, &apiv1.GetHostsRequest{}, grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		if len(h.Hosts) != 2 || len(h.Owners) != 1 {
			return errors.New("the instances do not know each other yet")
		}
		q.owner = nil
		count := [2]int{}
		for _, o := range h.Owners {
			for _, i := range o.Hosts {
				if i < 0 {
					return errors.New("a task has no owner yet")
				}
				n := 0
				if h.Hosts[i].Endpoint == q.addrs[1] {
					n = 1
				}
				count[n]++
				q.owner = append(q.owner, n)
			}
		}
		if count[0] != count[1] {
			return errors.New("the tasks are not shared yet")
		}
		return nil
	})
}

// phase runs for a while, with queries or without.
func (q *queryRun) phase(ctx context.Context, name string, ask func(context.Context, *queryResult), watching bool) (*queryResult, error) {
	fmt.Fprintln(os.Stderr, name)
	r := &queryResult{Kind: "queries", Phase: name, Start: time.Now().UTC().Truncate(time.Second), Offered: q.o.rate}
	within, end := context.WithTimeout(ctx, q.o.last)
	defer end()
	if watching {
		stop, err := q.watch(ctx, q.o.watchers)
		if err != nil {
			return nil, err
		}
		defer stop()
		r.Watchers = q.o.watchers
		within, end = context.WithTimeout(ctx, q.o.last)
		defer end()
	}
	for _, c := range q.children {
		if err := forgetPeak(c.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	from, records, began := q.used(), q.records(), time.Now()
	if ask != nil {
		r.Asked = q.o.gets + q.o.scans
		ask(within, r)
	} else {
		<-within.Done()
	}
	took := time.Since(began).Seconds()
	to := q.used()
	n := float64(q.records() - records)
	r.Seconds, r.Rate, r.CPU = took, n/took, (to.app-from.app)/(n/1e6)
	r.Foreign = (to.other - from.other) / took
	for _, c := range q.children {
		r.RSS = max(r.RSS, peakRSS(c.cmd.Process.Pid))
	}
	return r, ctx.Err()
}

func (q *queryRun) records() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.processed[0] + q.processed[1]
}

// used is what both instances, and everything but them, the broker and this process, have used.
func (q *queryRun) used() sample {
	app := cpuOf(q.children[0].cmd.Process.Pid) + cpuOf(q.children[1].cmd.Process.Pid)
	broker := cpuOf(q.brokerPid)
	return sample{time.Now(), 0, app, broker, cpuTotal() - app - broker - cpuOf(os.Getpid())}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// freeAddress returns an address on loopback that nobody listens at.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
