package queries

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/serve"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/client"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

const (
	partitions = 4
	session    = time.Second
)

// world is a broker and the instances of one app.
type world struct {
	t      *testing.T
	net    *embedded.Network
	broker *embedded.Broker
	cl     *kgo.Client

	mu   sync.Mutex
	live map[string]*instance
}

// instance is one life of an instance, with its server.
type instance struct {
	w        *world
	name     string
	app      *tidemark.App
	endpoint string
	handles  handles
	cancel   context.CancelFunc
	mute     context.CancelFunc // ends the server alone
	done     chan struct{}

	once sync.Once
	rpc  apiv1.QueriesClient
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, net: embedded.NewNetwork(), live: make(map[string]*instance)}
	var err error
	w.broker, err = embedded.Start(embedded.Options{
		Topics: map[string]int{"events": partitions, "prices": partitions, "out": partitions}, ListenFn: w.net.Listen,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.cl, err = kgo.NewClient(kgo.SeedBrokers(w.broker.Addrs()...), kgo.Dialer(w.net.Dialer("test")), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range w.nodes() {
			n.stop()
		}
		w.cl.Close()
		w.broker.Close()
	})
	return w
}

// price is a value with parts.
type price struct {
	Cents int64  `json:"cents"`
	Shop  string `json:"shop"`
}

// handles are the stores that typed readers ask.
type handles struct {
	counts *topology.Table[string, int64]
	prices *topology.VersionedStore[string, price]
}

// app has a store of every kind: counts per key, counts per key and minute, sessions, a history of prices, and lists.
func app() (*topology.Topology, handles) {
	var h handles
	t := topology.New("shop")
	events := t.Stream[string, string]("events")
	h.counts = events.Count("counts")
	h.counts.To("out")
	timed := t.Stream[string, price]("prices").Timestamps(nil, watermark.OutOfOrderness(time.Second))
	timed.Window(window.Tumbling(time.Minute), window.AllowedLateness(24*time.Hour)).Count("minutes").To("out")
	timed.Window(window.Session(time.Minute), window.AllowedLateness(24*time.Hour)).Count("sessions").To("out")
	h.prices = topology.Versioned[string, price]("history", topology.Forever)
	lists := topology.Lists[string, string]("shops")
	timed.Process("keep", func(out topology.Emitter[string, string], r topology.Record[string, price]) error {
		if _, err := h.prices.Put(out, r.Key, r.Timestamp(), r.Value); err != nil {
			return err
		}
		return lists.Append(out, r.Key, r.Value.Shop)
	}, h.prices, lists)
	return t, h
}

// start starts an instance.
func (w *world) start(name string) *instance {
	w.t.Helper()
	top, h := app()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	n := &instance{w: w, name: name, endpoint: l.Addr().String(), handles: h, done: make(chan struct{})}
	n.app, err = tidemark.New(top, tidemark.Config{
		App: "shop", Brokers: w.broker.Addrs(), Endpoint: n.endpoint, Workers: 1,
		CommitInterval: 20 * time.Millisecond, SessionTimeout: session, RevokeBudget: 500 * time.Millisecond,
		Kafka: tidemark.Kafka{Opts: []kgo.Opt{kgo.Dialer(w.net.Dialer(name)), kgo.MetadataMinAge(20 * time.Millisecond)}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	srv, err := serve.New(n.app, serve.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	answering, mute := context.WithCancel(ctx)
	n.mute = mute
	var both sync.WaitGroup
	both.Go(func() {
		if err := n.app.Run(ctx); err != nil {
			w.t.Errorf("instance %s: %v", name, err)
		}
	})
	both.Go(func() {
		if err := srv.Serve(answering, l); err != nil {
			w.t.Errorf("server of %s: %v", name, err)
		}
	})
	go func() {
		both.Wait()
		close(n.done)
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[name] = n
	return n
}

// stop ends an instance as a deployment does.
func (n *instance) stop() {
	n.w.mu.Lock()
	delete(n.w.live, n.name)
	n.w.mu.Unlock()
	n.cancel()
	<-n.done
}

// stand cuts the instance off from the brokers until the function it returns is called: it goes on answering, and does not
// know that others have taken over.
func (n *instance) stand() (again func()) {
	n.w.net.Freeze(n.name, true)
	return func() { n.w.net.Freeze(n.name, false) }
}

// disturb stops, starts and freezes instances, one after the other.
func (w *world) disturb(ctx context.Context, rng *rand.Rand) {
	for step := range 6 {
		pause(ctx, time.Duration(300+rng.IntN(400))*time.Millisecond)
		nodes := w.nodes()
		slices.SortFunc(nodes, func(a, b *instance) int { return strings.Compare(a.name, b.name) })
		n := nodes[rng.IntN(len(nodes))]
		switch step % 3 {
		case 0:
			n.stop()
			w.start(n.name)
		case 1:
			again := n.stand()
			pause(ctx, 2*session+session/2)
			again()
		default:
			w.start(n.name + "+")
		}
	}
	pause(ctx, time.Second)
}

// nodes returns the instances that are there.
func (w *world) nodes() (out []*instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.live {
		out = append(out, n)
	}
	return out
}

func (w *world) endpoints() (out []string) {
	for _, n := range w.nodes() {
		out = append(out, n.endpoint)
	}
	return out
}

// client returns a client that knows the instances that are there now.
func (w *world) client() *client.Client {
	w.t.Helper()
	c, err := client.New(client.Config{Endpoints: w.endpoints()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// await waits until cond holds, for at most a minute.
func (w *world) await(what string, cond func() bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			w.t.Fatalf("in vain: %s", what)
		}
	}
}

// ready waits until the instances between them run all tasks.
func (w *world) ready() {
	w.t.Helper()
	for _, n := range w.nodes() {
		<-n.app.Ready()
	}
	w.await("tasks", func() bool {
		for _, n := range w.nodes() {
			for _, s := range n.app.Stores() {
				for p := range max(1, s.Partitions) {
					if _, _, ok := n.app.Hosts().Owner(query.Task{Sub: s.Sub, Partition: p}); !ok {
						return false
					}
				}
			}
		}
		return true
	})
}

// send produces a record and returns where it went.
func (w *world) send(topic, key, value string, at time.Time) query.Position {
	w.t.Helper()
	r := &kgo.Record{Topic: topic, Partition: processor.PartitionOf([]byte(key), partitions), Key: []byte(key), Value: []byte(value), Timestamp: at}
	if err := w.cl.ProduceSync(w.t.Context(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	return tidemark.Produced(topic, r.Partition, r.Offset)
}

// rest asks over HTTP and returns status, body and header.
func (n *instance) rest(method, path, body string) (int, string, http.Header) {
	n.w.t.Helper()
	req, err := http.NewRequestWithContext(n.w.t.Context(), method, "http://"+n.endpoint+path, strings.NewReader(body))
	if err != nil {
		n.w.t.Fatal(err)
	}
	resp, text, err := roundTrip(req)
	if err != nil {
		n.w.t.Fatal(err)
	}
	return resp.StatusCode, text, resp.Header
}

// roundTrip sends a request, and follows no redirect.
func roundTrip(req *http.Request) (*http.Response, string, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func do(req *http.Request) (code int, body string, err error) {
	resp, body, err := roundTrip(req)
	if err != nil {
		return 0, "", err
	}
	return resp.StatusCode, body, nil
}
