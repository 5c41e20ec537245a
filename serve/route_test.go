package serve

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// at0 asks for a key of partition 0.
func at0(in *instance, ctx context.Context, key string) (*apiv1.GetResponse, error) {
	return in.client.Get(ctx, &apiv1.GetRequest{Store: "counts", Key: proto.String(key), Partition: proto.Int32(0), Timeout: "10s"})
}

// on makes an instance call fn once, when it is next asked for a view of partition 0.
func (in *instance) on(fn func()) {
	once := sync.OnceFunc(fn)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.onView = func(t query.Task) {
		if t.Partition == 0 {
			once()
		}
	}
}

// A question whose owner changes while it is asked finds the new owner: the map is looked at again.
func TestMapIsReadAgain(t *testing.T) {
	c := newCluster(t, 3, Config{})
	c.commit(0, kv("counts", "a", "1"))
	// Instance 1 believes that 0 has the task. When 0 is asked, the task is at 2, and instance 1 hears of it.
	c.instances[0].on(func() {
		c.move(0, 2)
		c.commit(0, kv("counts", "a", "2"))
	})
	out, err := at0(c.instances[1], context.Background(), "a")
	if err != nil || out.Row.Value.GetJson() != "2" {
		t.Fatalf("%v %v", out, err)
	}
}

// An instance that got a task answers although its own map does not say so yet.
func TestNewOwnerWithOldMap(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.commit(0, kv("counts", "a", "1"))
	c.move(0, 1, 0, 1)
	out, err := at0(c.instances[1], context.Background(), "a")
	if err != nil || out.Row.Value.GetJson() != "1" {
		t.Fatalf("%v %v", out, err)
	}
}

// A forwarded question is not forwarded again: the error names the owner that the instance knows of.
func TestOneHop(t *testing.T) {
	c := newCluster(t, 3, Config{})
	c.commit(0, kv("counts", "a", "1"))
	c.move(0, 2, 1)
	ctx := metadata.AppendToOutgoingContext(context.Background(), hopHeader, "1")
	for _, k := range []struct{ asked, owner int }{{0, 2}, {1, 0}} {
		_, err := at0(c.instances[k.asked], ctx, "a")
		wantReason(t, err, query.NotOwner)
		if e := reasoned(Error(err)); e.Host.Endpoint != c.instances[k.owner].endpoint || e.Task.Partition != 0 || e.Task.Sub != "main" {
			t.Errorf("asked %d: %+v", k.asked, e)
		}
		_, err = c.instances[k.asked].client.Scan(ctx, &apiv1.RowsRequest{Store: "counts", Partition: proto.Int32(0)})
		wantReason(t, err, query.NotOwner)
		_, err = c.instances[k.asked].client.MultiGet(ctx, &apiv1.MultiGetRequest{Store: "counts", Keys: []string{"a"}, Partition: proto.Int32(0)})
		wantReason(t, err, query.NotOwner)
		stream, err := c.instances[k.asked].client.Watch(ctx, &apiv1.WatchRequest{Store: "counts", Partition: proto.Int32(0)})
		if err == nil {
			_, err = stream.Recv()
		}
		wantReason(t, err, query.NotOwner)
	}
}

// Maps that disagree do not send a question back and forth: it ends with a named error at its deadline.
func TestMapsThatDisagree(t *testing.T) {
	c := newCluster(t, 2, Config{})
	// The first believes that the second has the task, the second that the first has it, and it is nowhere.
	c.move(0, 1, 1)
	c.change(0, func(f *fakeTask) { f.owner = -1 })
	_, err := c.instances[1].client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0), Timeout: "50ms"})
	wantReason(t, err, query.NoOwner)
}

func TestRedirect(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.commit(0, kv("counts", "a", "1"))
	in, owner := c.instances[1], c.instances[0]
	_, err := in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0), Redirect: true})
	wantReason(t, err, query.NotOwner)
	if e := reasoned(Error(err)); e.Host.Endpoint != owner.endpoint {
		t.Errorf("%+v", e)
	}
	path := "/v1/stores/counts/keys/a?partition=0&redirect=true"
	code, h, text := in.ask(t, "GET", path, "")
	if code != http.StatusTemporaryRedirect || h.Get("Location") != "http://"+owner.endpoint+path {
		t.Fatalf("%d %v %s", code, h, text)
	}
	if code, _, text := owner.ask(t, "GET", path, ""); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	// A scan stops where the rows are elsewhere.
	res, err := owner.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Redirect: true})
	if err != nil || len(res.Rows) != 1 || res.NextPageToken == "" {
		t.Fatalf("%v %v", res, err)
	}
	_, err = owner.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Redirect: true, PageToken: res.NextPageToken})
	wantReason(t, err, query.NotOwner)
}

// A task that is restored answers when it is back; before, a stale answer says how far it is behind.
func TestRestoring(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.commit(0, kv("counts", "a", "1"))
	c.change(0, func(f *fakeTask) { f.restoring, f.lag = true, 20 })
	for _, in := range c.instances {
		req := &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0), Timeout: "40ms"}
		_, err := in.client.Get(context.Background(), req)
		wantReason(t, err, query.Restoring)
		req.Consistency, req.MaxLag = apiv1.Consistency_STALE, 50
		out, err := in.client.Get(context.Background(), req)
		if err != nil || !out.Meta.Stale || out.Meta.Lag != 20 {
			t.Errorf("%v %v", out, err)
		}
		req.MaxLag = 10
		_, err = in.client.Get(context.Background(), req)
		wantReason(t, err, query.TooStale)
	}
	code, h, _ := c.instances[1].ask(t, "GET", "/v1/stores/counts/keys/a?partition=0&timeout=20ms", "")
	if code != 503 || h.Get("Retry-After") != "1" {
		t.Errorf("%d %v", code, h)
	}
	n := 0
	c.instances[0].mu.Lock()
	c.instances[0].onView = func(query.Task) {
		if n++; n == 3 {
			c.change(0, func(f *fakeTask) { f.restoring = false })
		}
	}
	c.instances[0].mu.Unlock()
	if out, err := at0(c.instances[1], context.Background(), "a"); err != nil || out.Meta.Stale {
		t.Errorf("%v %v", out, err)
	}
}

// A question waits for its position, also on another instance.
func TestPositionIsWaitedFor(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.commit(0, kv("counts", "a", "1"))
	for i, in := range c.instances {
		seq := string(rune('2' + i))
		c.instances[0].on(func() { go c.commit(0, kv("counts", "a", seq)) })
		out, err := in.client.Get(context.Background(), &apiv1.GetRequest{
			Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0), Position: "main/0#" + seq, Timeout: "10s",
		})
		if err != nil || out.Row.Value.GetJson() != seq || out.Meta.Position != "main/0#"+seq {
			t.Errorf("%v %v", out, err)
		}
	}
}

// The error of another instance at its deadline is the one that is told, not the end of the call to it.
func TestNamedErrorBeforeDeadline(t *testing.T) {
	c := newCluster(t, 2, Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := c.instances[1].client.Get(ctx, &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0), Position: "main/0#9"})
	wantReason(t, err, query.PositionNotReached)
}

// Rows of a task that leaves in the middle of a page are not told; the page comes whole from the next owner.
func TestMoveInTheMiddleOfAPage(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.commit(0, kv("counts", "a", "1"), kv("counts", "b", "1"))
	c.instances[0].on(func() { go c.move(0, 1) })
	for range 20 {
		res, err := c.instances[1].client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Partition: proto.Int32(0), Timeout: "10s"})
		if err != nil || len(res.Rows) != 2 || len(res.Metas) != 1 {
			t.Fatalf("%v %v", res, err)
		}
	}
}

// Partitions without an answer are named, and only they.
func TestPartial(t *testing.T) {
	c := newCluster(t, 2, Config{})
	want := c.fill(40)
	c.change(2, func(f *fakeTask) { f.restoring = true })
	for _, in := range c.instances {
		_, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Timeout: "60ms"})
		wantReason(t, err, query.Partial)
		if e := reasoned(Error(err)); len(e.Missing) != 1 || e.Missing[0] != 2 {
			t.Errorf("missing %v", e.Missing)
		}
		res, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Timeout: "200ms", AllowPartial: true})
		if err != nil || len(res.Missing) != 1 || res.Missing[0] != 2 || len(res.Metas) != 3 {
			t.Errorf("%v %v", res, err)
		}
		for _, r := range res.GetRows() {
			if r.GetPartition() == 2 {
				t.Errorf("a row of a partition without an answer: %v", r)
			}
		}
		if n := 0; len(res.GetRows()) >= len(want) || n != 0 {
			t.Errorf("%d rows", len(res.GetRows()))
		}
		many := &apiv1.MultiGetRequest{Store: "counts", Timeout: "60ms"}
		for _, w := range want {
			many.Keys = append(many.Keys, strings.Trim(w[2:], `"`))
		}
		_, err = in.client.MultiGet(context.Background(), many)
		wantReason(t, err, query.Partial)
		many.AllowPartial = true
		found, err := in.client.MultiGet(context.Background(), many)
		if err != nil || len(found.Missing) != 1 || found.Missing[0] != 2 || len(found.Found) != len(want) {
			t.Fatalf("%v %v", found, err)
		}
		for i, f := range found.Found {
			if f.Missing != (f.GetPartition() == 2) || f.Missing == (f.Row != nil) || f.Row != nil && f.Row.Key.GetJson() != want[i][2:] {
				t.Errorf("%s: %v", want[i], f)
			}
		}
	}
}

// An instance that does not listen counts as one that has no answer at the moment.
func TestOwnerCannotBeReached(t *testing.T) {
	c := newCluster(t, 2, Config{})
	c.commit(0, kv("counts", "a", "1"))
	in := c.instances[1]
	in.mu.Lock()
	m := *in.believ
	m.Hosts = []query.Host{{Instance: "gone", Endpoint: "127.0.0.1:1"}, m.Hosts[1]}
	in.believ = &m
	in.mu.Unlock()
	_, err := in.client.Get(context.Background(), &apiv1.GetRequest{Store: "counts", Key: proto.String("a"), Partition: proto.Int32(0), Timeout: "100ms"})
	wantReason(t, err, query.NoOwner)
}

// Random moves under questions: every answer is whole, and right as of its commit.
func TestQuestionsUnderMoves(t *testing.T) {
	c := newCluster(t, 3, Config{})
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			text := string(rune('0' + n%10))
			c.commit(0, kv("counts", "a", text), kv("counts", "b", text), kv("counts", "c", text))
			if n%7 == 0 {
				c.move(0, n/7%3, n/11%3)
				c.publish()
			}
		}
	})
	var askers sync.WaitGroup
	for _, in := range c.instances {
		askers.Go(func() {
			var last uint64
			for range 150 {
				res, err := in.client.Scan(context.Background(), &apiv1.RowsRequest{Store: "counts", Partition: proto.Int32(0), Timeout: "20s"})
				if err != nil {
					t.Error(err)
					return
				}
				seq := res.Metas[0].GetSeq()
				if seq < last {
					t.Errorf("commit %d after %d", seq, last)
				}
				last = seq
				for _, r := range res.Rows {
					if want := string(rune('0' + (seq-1)%10)); r.Value.GetJson() != want || len(res.Rows) != 3 {
						t.Errorf("commit %d: %v", seq, res.Rows)
					}
				}
			}
		})
	}
	askers.Wait()
	close(stop)
	all.Wait()
}
