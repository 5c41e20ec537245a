package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tidemark/tidemark/bench/internal/plain"
	"github.com/tidemark/tidemark/bench/internal/workload"
	"github.com/tidemark/tidemark/processor"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// latency is what questions of one kind have taken, in ms. They are sent at their rate whether those before have an answer or
// not; Late is how far the sender was behind that at most, because the machine was busy.
type latency struct {
	N      int     `json:"n"`
	Errors int     `json:"errors"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	P999   float64 `json:"p999_ms"`
	Max    float64 `json:"max_ms"`
	Late   float64 `json:"sender_late_ms"`
}

// question asks one.
type question func(ctx context.Context, rng *rand.Rand) error

// kind asks questions of one kind at a fixed rate.
type kind struct {
	rate int
	ask  question
	to   *latency // where the result goes

	mu     sync.Mutex
	times  []float64
	errors int
	last   error
	late   time.Duration // run's: how far it was behind its rate at most
}

// run asks until ctx ends. Each question has a goroutine, so that a slow one holds up no other.
func (k *kind) run(ctx context.Context, seed uint64) {
	if k.rate == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 8))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	began, sent := time.Now(), 0
	period := time.Duration(float64(time.Second) / float64(k.rate))
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for ; sent < int(now.Sub(began).Seconds()*float64(k.rate)); sent++ {
				begun := time.Now()
				k.late = max(k.late, begun.Sub(began.Add(time.Duration(sent+1)*period)))
				own := rand.New(rand.NewPCG(rng.Uint64(), 1))
				wg.Go(func() {
					err := k.ask(context.WithoutCancel(ctx), own)
					took := time.Since(begun).Seconds() * 1e3
					k.mu.Lock()
					defer k.mu.Unlock()
					if err != nil {
						k.errors++
						k.last = err
						return
					}
					k.times = append(k.times, took)
				})
			}
		}
	}
}

func (k *kind) latency() latency {
	slices.Sort(k.times)
	if k.last != nil {
		fmt.Println("a question without an answer:", k.last)
	}
	l := latency{N: len(k.times), Errors: k.errors, Late: k.late.Seconds() * 1e3}
	if l.N > 0 {
		l.P50, l.P99, l.P999, l.Max = quantile(k.times, 0.5), quantile(k.times, 0.99), quantile(k.times, 0.999), k.times[l.N-1]
	}
	return l
}

// askPlain asks the plain services in the way of ask.
func (q *queryRun) askPlain(ctx context.Context, r *queryResult) {
	scan := func(ctx context.Context, rng *rand.Rand) error {
		_, err := q.plainly[rng.IntN(2)].Scan(ctx, &apiv1.RowsRequest{Store: "counts", Limit: 100, Raw: true})
		return err
	}
	askAll(ctx,
		&kind{rate: q.o.gets / 2, ask: q.getPlain("counts"), to: &r.Local}, &kind{rate: q.o.gets / 2, ask: q.getPlain(plain.Forward), to: &r.Forward},
		&kind{rate: q.o.scans, ask: scan, to: &r.Scans})
}

func (q *queryRun) getPlain(store string) question {
	return func(ctx context.Context, rng *rand.Rand) error {
		key := workload.AppendKey(nil, rng.Uint64N(q.spec.Keys))
		_, err := q.plainly[rng.IntN(2)].Get(ctx, &apiv1.GetRequest{Store: store, RawKey: key, Raw: true})
		return err
	}
}

// ask asks Tidemark, and, a tenth as often and at the same time, the plain services: what holds up both is not Tidemark.
func (q *queryRun) ask(ctx context.Context, r *queryResult) {
	askAll(ctx,
		&kind{rate: q.o.gets / 2, ask: q.get(false), to: &r.Local}, &kind{rate: q.o.gets / 2, ask: q.get(true), to: &r.Forward},
		&kind{rate: q.o.scans, ask: q.scan, to: &r.Scans},
		&kind{rate: q.o.gets / 20, ask: q.getPlain("counts"), to: &r.PlainLocal}, &kind{rate: q.o.gets / 20, ask: q.getPlain(plain.Forward), to: &r.PlainForward})
}

// askAll asks all kinds of questions until ctx ends.
func askAll(ctx context.Context, kinds ...*kind) {
	var wg sync.WaitGroup
	for i, k := range kinds {
		wg.Go(func() { k.run(ctx, uint64(i)) })
	}
	wg.Wait()
	for _, k := range kinds {
		*k.to = k.latency()
	}
}

// get asks for a random key, of the instance that has it or of the other one. A key that no record had yet is an answer too.
func (q *queryRun) get(other bool) question {
	store := "counts"
	return func(ctx context.Context, rng *rand.Rand) error {
		key := workload.AppendKey(nil, rng.Uint64N(q.spec.Keys))
		n := q.owner[processor.PartitionOf(key, workload.Partitions)]
		if other {
			n = 1 - n
		}
		_, err := q.clients[n].Get(ctx, &apiv1.GetRequest{Store: store, RawKey: key, Raw: true})
		if status.Code(err) == codes.NotFound {
			return nil
		}
		return err
	}
}

// scan reads a hundred rows from a random place on.
func (q *queryRun) scan(ctx context.Context, rng *rand.Rand) error {
	p := rng.Int32N(workload.Partitions)
	_, err := q.clients[q.owner[p]].Scan(ctx, &apiv1.RowsRequest{
		Store: "counts", Partition: &p, RawFromKey: workload.AppendKey(nil, rng.Uint64N(q.spec.Keys)), Limit: 100, Raw: true,
	})
	return err
}

// perConnection is how many watches one connection has: half of what a server allows.
const perConnection = 500

// watch begins watches of keys that do not change, on both instances, and leaves a scan behind that nobody reads to its end.
func (q *queryRun) watch(ctx context.Context, n int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var conns []*grpc.ClientConn
	stop = func() {
		cancel()
		wg.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	}
	for i := range n {
		if i%perConnection == 0 {
			conn, err := grpc.NewClient(q.addrs[i/perConnection%2], grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				stop()
				return nil, err
			}
			conns = append(conns, conn)
		}
		stream, err := apiv1.NewQueriesClient(conns[len(conns)-1]).Watch(ctx, &apiv1.WatchRequest{Store: "counts", RawKey: fmt.Appendf(nil, "idle-%d", i), Raw: true})
		if err != nil {
			stop()
			return nil, err
		}
		for complete := false; !complete; {
			e, err := stream.Recv()
			if err != nil {
				stop()
				return nil, err
			}
			complete = e.Complete
		}
		wg.Go(func() {
			for {
				if _, err := stream.Recv(); err != nil {
					return
				}
			}
		})
	}
	abandoned, leave := context.WithCancel(ctx)
	leave()
	_, _ = q.clients[0].Scan(abandoned, &apiv1.RowsRequest{Store: "counts", Limit: 10_000, Raw: true})
	_, err = q.clients[0].Watch(ctx, &apiv1.WatchRequest{Store: "counts"}) // of everything, and nobody reads it
	return stop, err
}
