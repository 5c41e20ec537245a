package changelog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
)

func progress(seq uint64) *kgo.Record {
	b, err := (&changelog.Progress{Seq: seq, Writer: 1}).Append(nil)
	if err != nil {
		panic(err)
	}
	return &kgo.Record{Topic: "progress", Key: []byte(changelog.ProgressKey), Value: b}
}

func TestReadTail(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("progress", 1, map[string]string{"cleanup.policy": "compact"})
		p := c.client("p", kgo.TransactionalID("p"))
		r := c.reader()
		commit := func(commit bool, rec *kgo.Record) {
			c.ok(p.BeginTransaction())
			c.ok(p.ProduceSync(c.ctx, rec).FirstErr())
			c.ok(p.EndTransaction(c.ctx, kgo.TransactionEndTry(commit)))
		}
		tail := func(name string, seq uint64, offset int64) {
			t.Helper()
			got, err := r.ReadTail(c.ctx, "progress", 0, c.bounds("progress", 0).HighWatermark)
			c.ok(err)
			if got.Found != (seq > 0) || got.Found && (got.Record.Seq != seq || got.Offset != offset) {
				t.Errorf("%s: %+v, want seq %d at %d", name, got, seq, offset)
			}
		}
		tail("empty", 0, 0)
		commit(true, progress(1))
		commit(true, progress(2))
		tail("two commits", 2, 2)
		commit(false, progress(3))
		tail("aborted tail", 2, 2)
		for range 700 { // several windows without a progress record
			commit(false, progress(9))
		}
		tail("far back", 2, 2)
		c.put(c.admin, "progress", 0, "other=1")
		tail("another key", 2, 2)
		commit(true, progress(4))
		end := c.bounds("progress", 0).HighWatermark
		tail("after compaction of the past", 4, end-2)
		c.broker.Cluster().Compact()
		tail("compacted", 4, end-2)
		commit(true, &kgo.Record{Topic: "progress", Key: []byte(changelog.ProgressKey)})
		tail("deleted by a reset", 0, 0)
		commit(true, &kgo.Record{Topic: "progress", Key: []byte(changelog.ProgressKey), Value: []byte("garbage")})
		if _, err := r.ReadTail(c.ctx, "progress", 0, c.bounds("progress", 0).HighWatermark); !errors.Is(err, changelog.ErrProgress) {
			t.Errorf("garbage: %v", err)
		}
	})
}

// The search must stop at the start of a log that does not begin at zero.
func TestReadTailStopsAtTheLogStart(t *testing.T) {
	inCluster(t, embedded.Options{}, func(c *cluster) {
		c.topic("progress", 1, nil)
		for i := range 300 {
			c.put(c.admin, "progress", 0, fmt.Sprintf("k%d=v", i))
		}
		r := c.reader()
		for _, start := range []int64{0, 10, 44, 45, 299, 300} {
			c.ok(c.broker.Cluster().DeleteRecords("progress", 0, start))
			got, err := r.ReadTail(c.ctx, "progress", 0, 300)
			if err != nil || got.Found {
				t.Errorf("start %d: %+v, %v", start, got, err)
			}
		}
	})
}
