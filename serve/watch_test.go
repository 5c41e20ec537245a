package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// patient is how long a test waits for what must come.
const patient = 30 * time.Second

// mirror is what a client of a watch knows.
type mirror struct {
	rows     map[int32]map[string]string
	complete bool
	token    string
	seq      map[int32]uint64
	resets   int
	events   int
}

func newMirror() *mirror {
	return &mirror{rows: map[int32]map[string]string{}, seq: map[int32]uint64{}}
}

func (m *mirror) take(t testing.TB, e *apiv1.WatchEvent) {
	t.Helper()
	m.events++
	if m.token = e.Token; m.token == "" {
		t.Error("an event without a token")
	}
	if e.Complete {
		if m.complete {
			t.Error("complete twice")
		}
		m.complete = true
		return
	}
	p := e.GetPartition()
	if e.Reset_ {
		m.rows[p] = map[string]string{}
		m.resets++
	} else if m.rows[p] == nil {
		t.Errorf("rows of partition %d before those there are", p)
		return
	}
	if seq := e.GetMeta().GetSeq(); seq < m.seq[p] {
		t.Errorf("commit %d after %d", seq, m.seq[p])
	} else {
		m.seq[p] = seq
	}
	for _, r := range e.Rows {
		if r.Deleted {
			delete(m.rows[p], r.Key.GetJson())
		} else {
			m.rows[p][r.Key.GetJson()] = r.Value.GetJson()
		}
	}
}

func (m *mirror) all() map[string]string {
	out := map[string]string{}
	for _, rows := range m.rows {
		maps.Copy(out, rows)
	}
	return out
}

// until takes events until the mirror is as it should be.
func (m *mirror) until(t testing.TB, next func() (*apiv1.WatchEvent, error), ok func() bool) {
	t.Helper()
	for !ok() {
		e, err := next()
		if err != nil {
			t.Fatalf("%v, has %v", err, m.all())
		}
		m.take(t, e)
	}
}

// The rows there are, then changes, from tasks of both instances.
func TestWatchStore(t *testing.T) {
	c := newCluster(t, 2, Config{})
	want := c.fill(30)
	for _, in := range c.instances {
		in.watchRows = 3
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		stream, err := in.client.Watch(ctx, &apiv1.WatchRequest{Store: "counts"})
		if err != nil {
			t.Fatal(err)
		}
		m := newMirror()
		m.until(t, stream.Recv, func() bool { return m.complete })
		if len(m.all()) != len(want) || m.resets != partitions {
			t.Errorf("%d rows, %d resets", len(m.all()), m.resets)
		}
		c.put("counts", "new", "1")
		c.put("counts", "k001", "")
		m.until(t, stream.Recv, func() bool { return m.all()[`"new"`] == "1" && m.all()[`"k001"`] == "" })
		c.put("counts", "new", "")
		c.put("counts", "k001", `{"n":1}`)
		m.until(t, stream.Recv, func() bool { return m.all()[`"new"`] == "" && m.all()[`"k001"`] != "" })
		cancel()
	}
}

// A watch follows its task from owner to owner and skips nothing: every commit adds to a sum of its own keys.
func TestWatchFollowsMoves(t *testing.T) {
	c := newCluster(t, 3, Config{})
	for _, in := range c.instances {
		in.watchRows = 2
	}
	c.commit(0, kv("counts", "k1", "1"))
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	stream, err := c.instances[2].client.Watch(ctx, &apiv1.WatchRequest{Store: "counts", Partition: proto.Int32(0)})
	if err != nil {
		t.Fatal(err)
	}
	m := newMirror()
	m.until(t, stream.Recv, func() bool { return m.complete })
	n := 1
	for to := range 12 {
		for range 3 {
			n++
			c.commit(0, kv("counts", fmt.Sprint("k", n), fmt.Sprint(n)))
		}
		// Commits come between the move and the news of it, and at the new owner before anybody watches there.
		c.change(0, func(f *fakeTask) { f.owner, f.epoch = to%3, f.epoch+1 })
		n++
		c.commit(0, kv("counts", fmt.Sprint("k", n), fmt.Sprint(n)))
		c.publish()
		m.until(t, stream.Recv, func() bool { return len(m.all()) == n })
	}
	if m.resets != 1 {
		t.Errorf("%d resets: the watch began anew", m.resets)
	}
}

// A watch goes on behind its token, on another instance too.
func TestWatchToken(t *testing.T) {
	c := newCluster(t, 2, Config{})
	want := c.fill(20)
	for _, in := range c.instances {
		in.watchRows = 2
	}
	m := newMirror()
	watch := func(in *instance, stopAt func() bool) {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		stream, err := in.client.Watch(ctx, &apiv1.WatchRequest{Store: "counts", Token: m.token})
		if err != nil {
			t.Fatal(err)
		}
		m.complete = false
		m.until(t, stream.Recv, stopAt)
	}
	for i := 1; !m.complete; i++ { // ends in the middle of the rows there are, over and over
		m.events = 0
		watch(c.instances[i%2], func() bool { return m.events >= 5 && len(m.seq) > 0 || m.complete })
	}
	if len(m.all()) != len(want) {
		t.Errorf("%d rows, want %d", len(m.all()), len(want))
	}
	resets := m.resets
	c.put("counts", "new", "1")
	watch(c.instances[0], func() bool { return m.all()[`"new"`] == "1" })
	if m.resets != resets {
		t.Error("a watch with a token began anew")
	}
	// Changes that have left memory: the rows there are come again.
	for p := range int32(partitions) {
		c.commit(p, kv("counts", fmt.Sprint("late", p), "1"))
		c.commit(p, kv("counts", fmt.Sprint("later", p), "1"))
		c.change(p, func(f *fakeTask) { f.log = f.log[len(f.log)-1:] })
	}
	watch(c.instances[1], func() bool { return len(m.all()) == len(want)+1+2*partitions })
	if m.resets != resets+partitions {
		t.Errorf("%d resets", m.resets-resets)
	}
	for _, token := range []string{"x", m.token + "A", m.token[:len(m.token)-2]} {
		code, _, text := c.instances[0].ask(t, "GET", "/v1/stores/counts:watch?token="+token, "")
		if code != 400 || !strings.Contains(text, string(query.TokenMalformed)) {
			t.Errorf("%d %s", code, text)
		}
	}
	code, _, text := c.instances[0].ask(t, "GET", "/v1/stores/counts:watch?key=a&token="+m.token, "")
	if code != 400 || !strings.Contains(text, string(query.TokenMalformed)) {
		t.Errorf("%d %s", code, text)
	}
}

// Ranges, filters and fields of a watch, over HTTP: one line per event. What the filter no longer lets pass is deleted.
func TestWatchOverHTTP(t *testing.T) {
	c := newCluster(t, 2, Config{})
	p := c.put("counts", "a", `{"n":1,"m":9}`)
	c.commit(p, kv("counts", "b", `{"n":7}`))
	in := c.instances[(int(p)+1)%2]
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	url := fmt.Sprintf("http://%s/v1/stores/counts:watch?to_key=b&partition=%d&fields=n&filter=value.n%%3C5", in.endpoint, p)
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	next := func() (*apiv1.WatchEvent, error) {
		if !lines.Scan() {
			return nil, fmt.Errorf("the stream has ended: %v", lines.Err())
		}
		var e struct {
			Partition *int32
			Reset     bool
			Complete  bool
			Token     string
			Meta      struct{ Seq uint64 }
			Rows      []struct {
				Key, Value json.RawMessage
				Deleted    bool
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		out := &apiv1.WatchEvent{Partition: e.Partition, Reset_: e.Reset, Complete: e.Complete, Token: e.Token, Meta: &apiv1.Meta{Seq: &e.Meta.Seq}}
		for _, r := range e.Rows {
			out.Rows = append(out.Rows, &apiv1.Row{
				Key: &apiv1.Datum{Form: &apiv1.Datum_Json{Json: string(r.Key)}}, Value: &apiv1.Datum{Form: &apiv1.Datum_Json{Json: string(r.Value)}}, Deleted: r.Deleted,
			})
		}
		return out, nil
	}
	m := newMirror()
	m.until(t, next, func() bool { return m.complete })
	if fmt.Sprint(m.all()) != `map["a":{"n":1}]` {
		t.Errorf("%v", m.all())
	}
	c.commit(p, kv("counts", "a", `{"n":2}`))
	m.until(t, next, func() bool { return m.all()[`"a"`] == `{"n":2}` })
	c.commit(p, kv("counts", "a", `{"n":5}`), kv("counts", "b", `{"n":1}`))
	m.until(t, next, func() bool { return len(m.all()) == 0 })
	// The server closes: the last line says so.
	go in.server.Close()
	for lines.Scan() {
		if text := lines.Text(); strings.HasPrefix(text, `{"error":`) {
			if !strings.Contains(text, string(query.NoOwner)) {
				t.Error(text)
			}
			return
		}
	}
	t.Error("the stream ended without an error")
}

// Watchers are closed with the call, wherever they are.
func TestWatchersAreClosed(t *testing.T) {
	c := newCluster(t, 2, Config{})
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	stream, err := c.instances[0].client.Watch(ctx, &apiv1.WatchRequest{Store: "counts"})
	if err != nil {
		t.Fatal(err)
	}
	m := newMirror()
	m.until(t, stream.Recv, func() bool { return m.complete })
	cancel()
	for _, in := range c.instances {
		in.server.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.instances[0].closed + c.instances[1].closed; n != partitions {
		t.Errorf("%d watchers closed", n)
	}
}
