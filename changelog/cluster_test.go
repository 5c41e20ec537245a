package changelog_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
)

// cluster is an in-process broker in virtual time with what the tests of this package
// do to it.
type cluster struct {
	*testing.T
	ctx     context.Context
	cancel  context.CancelFunc
	broker  *embedded.Broker
	network *embedded.Network
	addrs   []string
	admin   *kgo.Client
}

// inCluster runs a test in a bubble of virtual time.
func inCluster(t *testing.T, o embedded.Options, test func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) { test(newCluster(t, o)) })
}

func newCluster(t *testing.T, o embedded.Options) *cluster {
	c := &cluster{T: t, network: embedded.NewNetwork()}
	c.ctx, c.cancel = context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(c.cancel)
	o.ListenFn = c.network.Listen
	var err error
	if c.broker, err = embedded.Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.broker.Close)
	c.addrs = c.broker.Addrs()
	c.admin = c.client("admin")
	return c
}

// sleep lets virtual time pass.
func (c *cluster) sleep(d time.Duration) { time.Sleep(d) }

// background runs f until the test is over and c.ctx ends.
func (c *cluster) background(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	c.Cleanup(func() {
		c.cancel()
		<-done
	})
}

func (c *cluster) opts(name string, more ...kgo.Opt) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(c.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if c.network != nil {
		opts = append(opts, kgo.Dialer(c.network.Dialer(name)))
	}
	return append(opts, more...)
}

func (c *cluster) client(name string, more ...kgo.Opt) *kgo.Client {
	c.Helper()
	cl, err := kgo.NewClient(c.opts(name, more...)...)
	c.ok(err)
	c.Cleanup(cl.Close)
	return cl
}

func (c *cluster) reader(more ...func(*changelog.ReaderConfig)) *changelog.Reader {
	c.Helper()
	cfg := changelog.ReaderConfig{Client: c.opts("reader")}
	for _, f := range more {
		f(&cfg)
	}
	r, err := changelog.NewReader(cfg)
	c.ok(err)
	c.Cleanup(r.Close)
	return r
}

func (c *cluster) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) topic(name string, partitions int, configs map[string]string) {
	c.Helper()
	c.ok(c.broker.CreateTopic(name, partitions, configs))
}

// put writes records outside a transaction, a batch each; "k=v", "k" deletes.
func (c *cluster) put(cl *kgo.Client, topic string, partition int32, records ...string) {
	c.Helper()
	for _, r := range records {
		c.ok(cl.ProduceSync(c.ctx, record(topic, partition, r)).FirstErr())
	}
}

func record(topic string, partition int32, s string) *kgo.Record {
	k, v, ok := cut(s)
	r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(k)}
	if ok {
		r.Value = []byte(v)
	}
	return r
}

func cut(s string) (k, v string, ok bool) {
	for i := range s {
		if s[i] == '=' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// transact writes records in one transaction, in one batch, and ends it.
func (c *cluster) transact(producer *kgo.Client, commit bool, topic string, partition int32, records ...string) {
	c.Helper()
	c.ok(producer.BeginTransaction())
	c.stage(producer, topic, partition, records...)
	c.ok(producer.EndTransaction(c.ctx, kgo.TransactionEndTry(commit)))
}

func (c *cluster) stage(producer *kgo.Client, topic string, partition int32, records ...string) {
	c.Helper()
	var list []*kgo.Record
	for _, r := range records {
		list = append(list, record(topic, partition, r))
	}
	c.ok(producer.ProduceSync(c.ctx, list...).FirstErr())
}

func (c *cluster) bounds(topic string, partition int32) changelog.Bounds {
	c.Helper()
	p := changelog.TopicPartition{Topic: topic, Partition: partition}
	b, err := changelog.ListBounds(c.ctx, c.admin, []changelog.TopicPartition{p})
	c.ok(err)
	return b[p]
}

// skipTo writes and deletes records until the partition is empty with its start and end
// at an offset.
func (c *cluster) skipTo(topic string, partition int32, offset int64) {
	c.Helper()
	for c.bounds(topic, partition).HighWatermark < offset {
		c.put(c.admin, topic, partition, "filler=x")
	}
	c.ok(c.broker.Cluster().DeleteRecords(topic, partition, offset))
}

// read reads one partition and returns what came, as "offset:k=v".
func (c *cluster) read(r *changelog.Reader, p changelog.Partition) (got []string, pos int64, err error) {
	c.Helper()
	positions, err := r.Read(c.ctx, []changelog.Partition{p}, func(_ int, rec *kgo.Record) error {
		got = append(got, line(rec))
		return nil
	}, nil)
	return got, positions[0], err
}

func line(r *kgo.Record) string {
	if r.Value == nil {
		return fmt.Sprintf("%d:%s", r.Offset, r.Key)
	}
	return fmt.Sprintf("%d:%s=%s", r.Offset, r.Key, r.Value)
}

// expect reads to the high watermark and compares.
func (c *cluster) expect(r *changelog.Reader, topic string, from int64, want ...string) {
	c.Helper()
	end := c.bounds(topic, 0).HighWatermark
	got, pos, err := c.read(r, changelog.Partition{Topic: topic, From: from, Target: end})
	c.ok(err)
	if pos != end {
		c.Errorf("position %d, want %d", pos, end)
	}
	if !slices.Equal(got, want) {
		c.Errorf("got  %v\nwant %v", got, want)
	}
}

// onFetch lets f change the answer of the next fetches of one partition; f returns nil
// to let the broker answer.
func (c *cluster) onFetch(f func(*kmsg.FetchRequest) *kmsg.FetchResponse) {
	c.broker.Cluster().ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.broker.Cluster().KeepControl()
		resp := f(req.(*kmsg.FetchRequest))
		return resp, nil, resp != nil
	})
}

// emptyAnswer is an answer with positions and no batch.
func emptyAnswer(req *kmsg.FetchRequest, hw, lso int64, code *kerr.Error) *kmsg.FetchResponse {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	for _, rt := range req.Topics {
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.HighWatermark, p.LastStableOffset = rp.Partition, hw, lso
			p.RecordBatches = []byte{}
			if code != nil {
				p.ErrorCode = code.Code
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}
