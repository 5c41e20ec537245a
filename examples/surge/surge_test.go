package main

import (
	"context"
	"encoding/json/v2"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
)

// pane names what a record of the app's topic is about.
type pane struct {
	cell string
	end  time.Time
}

// loop counts what the topology must show of some input: the windows that every topic of a partition has passed.
func loop(records []*kgo.Record, w windows) map[pane]Surge {
	newest := map[int32]map[string]time.Time{}
	counts := map[pane]Activity{}
	partition := map[string]int32{}
	for _, r := range records {
		var at struct{ At time.Time }
		if err := json.Unmarshal(r.Value, &at, json.MatchCaseInsensitiveNames(true)); err != nil {
			panic(err)
		}
		partition[string(r.Key)] = r.Partition
		if newest[r.Partition] == nil {
			newest[r.Partition] = map[string]time.Time{}
		}
		if at.At.After(newest[r.Partition][r.Topic]) {
			newest[r.Partition][r.Topic] = at.At
		}
		a := Activity{Pings: 1}
		if r.Topic == requestsTopic {
			a = Activity{Requests: 1}
		}
		for end := at.At.Truncate(w.hop).Add(w.hop); !end.Add(-w.size).After(at.At); end = end.Add(w.hop) {
			p := pane{string(r.Key), end}
			counts[p] = counts[p].Add(a)
		}
	}
	want := map[pane]Surge{}
	for p, a := range counts {
		n := newest[partition[p.cell]]
		mark := min(n[pingsTopic].UnixMilli(), n[requestsTopic].UnixMilli()) - w.outOfOrder.Milliseconds()
		if end := p.end.UnixMilli(); end <= mark {
			want[p] = surgeOf(a, end, w.size)
		}
	}
	return want
}

// Three minutes of a city lie in the topics. What the topology makes of them is what a loop counts.
func TestSameAsPlainLoop(t *testing.T) {
	w := windows{size: 30 * time.Second, hop: 5 * time.Second, outOfOrder: 2 * time.Second, idleAfter: -1}
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.MetadataMinAge(100*time.Millisecond),
		kgo.ConsumeTopics(surgeTopic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := makeTopics(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := newCity(rand.New(rand.NewPCG(seed, 1)), 300)
	var records []*kgo.Record
	now := time.Date(2026, 6, 1, 18, 0, 0, 0, time.UTC)
	for n := range 3 * 60 * 50 {
		now = now.Add(20 * time.Millisecond)
		r, err := c.ping(now)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
		if n%10 == 0 {
			if r, err = c.request(now); err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	want := loop(records, w)
	if len(want) < 1000 {
		t.Fatalf("the loop makes only %d windows", len(want))
	}

	app, err := tidemark.New(surge(w), tidemark.Config{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(context.Background()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := map[pane]Surge{}
	for len(got) < len(want) && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			var s Surge
			if err := json.Unmarshal(r.Value, &s); err != nil {
				t.Error(err)
			}
			p := pane{string(r.Key), s.End}
			if _, twice := got[p]; twice {
				t.Errorf("%v is there twice", p)
			}
			got[p] = s
		})
	}
	app.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pane{})); diff != "" {
		t.Errorf("-loop +tidemark:\n%s", diff)
	}
}

// The program runs, shows windows as lines where there is no terminal, and ends in order.
func TestRun(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := windows{size: time.Second, hop: 200 * time.Millisecond, outOfOrder: 500 * time.Millisecond, idleAfter: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, options{rate: 500, windows: w}, out) }()
	read := func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	limit := time.After(30 * time.Second)
	for strings.Count(read(), "free drivers") < 3 {
		select {
		case err := <-ended:
			t.Fatalf("ended: %v\n%s", err, read())
		case <-limit:
			t.Fatalf("no windows in\n%s", read())
		case <-time.After(20 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// On a terminal the map replaces the last one.
func TestMap(t *testing.T) {
	var b strings.Builder
	s := &screen{out: &b, live: true}
	end := time.Date(2026, 6, 1, 18, 0, 0, 0, time.UTC)
	s.draw(map[string]Surge{"3:1": {Ratio: 2.25, Requests: 9, Drivers: 4}}, end, 30*time.Second)
	if got := strings.Count(b.String(), "·"); got != columns*rows-1+1 { // and once in the legend
		t.Errorf("%d idle cells", got)
	}
	if !strings.Contains(b.String(), "48;5;124m 2.2 ") {
		t.Errorf("no hot cell in\n%q", b.String())
	}
	b.Reset()
	s.draw(nil, end, time.Minute)
	if !strings.HasPrefix(b.String(), "\x1b[12A\x1b[J") {
		t.Errorf("the map does not go up: %q", b.String())
	}
}
