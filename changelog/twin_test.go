package changelog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
)

// Random logs, read by the Reader and by a consuming client, must hold the same records:
// transactions that commit, abort, interleave, codecs, compaction, small answers, starts
// anywhere.
func TestReadAgainstConsumer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for n := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, n))
		inCluster(t, embedded.Options{}, func(c *cluster) {
			const partitions = 3
			codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.SnappyCompression(), kgo.GzipCompression(), kgo.Lz4Compression()}
			c.topic("log", partitions, map[string]string{"cleanup.policy": "compact"})
			var producers []*kgo.Client
			for i, codec := range codecs {
				id := fmt.Sprintf("p%d", i)
				producers = append(producers, c.client(id, kgo.TransactionalID(id), kgo.ProducerBatchCompression(codec)))
			}
			open := make([]bool, len(producers))
			end := func(i int) {
				open[i] = false
				c.ok(producers[i].EndTransaction(c.ctx, kgo.TransactionEndTry(rnd.IntN(3) > 0)))
			}
			for step := range 150 {
				i := rnd.IntN(len(producers))
				switch {
				case open[i] && rnd.IntN(3) == 0:
					end(i)
				default:
					if !open[i] {
						c.ok(producers[i].BeginTransaction())
						open[i] = true
					}
					var batch []string
					for range 1 + rnd.IntN(20) {
						r := fmt.Sprintf("k%d", rnd.IntN(200))
						if rnd.IntN(8) > 0 {
							r += fmt.Sprintf("=%d", step)
						}
						batch = append(batch, r)
					}
					c.stage(producers[i], "log", int32(rnd.IntN(partitions)), batch...)
				}
			}
			for i := range producers {
				if open[i] {
					end(i)
				}
			}
			if rnd.IntN(2) == 0 {
				c.broker.Cluster().Compact()
			}
			var parts []changelog.Partition
			for p := range int32(partitions) {
				b := c.bounds("log", p)
				from := b.Start + rnd.Int64N(b.HighWatermark-b.Start+1)
				parts = append(parts, changelog.Partition{Topic: "log", Partition: p, From: from, Target: b.HighWatermark})
			}
			want := c.consume(parts)
			r := c.reader(func(cfg *changelog.ReaderConfig) {
				cfg.MaxBytes = []int32{100, 700, 4 << 20}[rnd.IntN(3)]
				cfg.Answers = 1 + rnd.IntN(4)
			})
			for range 2 { // the second time in used memory
				got := make([][]string, partitions)
				positions, err := r.Read(c.ctx, parts, func(i int, rec *kgo.Record) error {
					got[i] = append(got[i], line(rec))
					return nil
				}, nil)
				c.ok(err)
				for i := range parts {
					if !slices.Equal(got[i], want[i]) || positions[i] != parts[i].Target {
						t.Fatalf("seed %d/%d, partition %d from %d: position %d of %d\ngot  %v\nwant %v", seed, n, i, parts[i].From, positions[i], parts[i].Target, got[i], want[i])
					}
				}
			}
		})
	}
}

// In real time: a zstd decoder is closed by a finalizer, which may not touch what was
// made in a bubble.
func TestReadZstd(t *testing.T) {
	c := newCluster(t, embedded.Options{})
	c.topic("log", 1, nil)
	p := c.client("p", kgo.TransactionalID("p"), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("%d:k%d=%d", 2*i, i, i))
		c.transact(p, true, "log", 0, fmt.Sprintf("k%d=%d", i, i))
	}
	r := c.reader()
	c.expect(r, "log", 0, want...)
	c.expect(r, "log", 0, want...)
}

// consume reads the partitions with a consuming client until nothing more comes.
func (c *cluster) consume(parts []changelog.Partition) [][]string {
	c.Helper()
	at := map[int32]kgo.Offset{}
	for _, p := range parts {
		at[p.Partition] = kgo.NewOffset().At(p.From)
	}
	cl := c.client("twin", kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"log": at}), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	out := make([][]string, len(parts))
	var bad error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			f := cl.PollFetches(c.ctx)
			if f.IsClientClosed() {
				return
			}
			if err := f.Err(); err != nil && bad == nil {
				bad = err
			}
			f.EachRecord(func(r *kgo.Record) { out[r.Partition] = append(out[r.Partition], line(r)) })
		}
	}()
	synctest.Wait() // the client has fetched all there is and waits for more
	cl.Close()
	<-done
	c.ok(bad)
	return out
}
