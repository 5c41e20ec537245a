package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/serve/client"
	"github.com/tidemark/tidemark/store"
)

func of(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func partitionOf(key string) int32 { return processor.PartitionOf([]byte(key), partitions) }

func reader(t testing.TB, c *client.Client, name string) *client.Reader[string, int64] {
	r, err := client.Store[string, int64](c, name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// all writes rows as text.
func all(rows iter.Seq2[client.Row[string, int64], error]) string {
	var out []string
	for r, err := range rows {
		if err != nil {
			out = append(out, "error: "+err.Error())
			continue
		}
		text := fmt.Sprintf("%s=%d", r.Key, r.Value)
		if !r.Start.IsZero() {
			text += fmt.Sprintf("@%d", r.Start.UnixMilli())
		}
		if !r.End.IsZero() {
			text += fmt.Sprintf("-%d", r.End.UnixMilli())
		}
		if r.Index > 0 {
			text += fmt.Sprintf("#%d", r.Index)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// Every question, asked of the real server on three instances.
func TestRealAnswers(t *testing.T) {
	w := newWorld(t, 3)
	c := w.client(client.Config{})
	ctx := t.Context()
	key := []byte("a")
	p := partitionOf("a")
	w.commit(p, 0, map[string][]byte{"a": of(7)})
	w.commit(p, 1, map[string][]byte{
		string(store.AppendWindowKey(nil, 60_000, key)):  of(1),
		string(store.AppendWindowKey(nil, 120_000, key)): of(2),
		string(store.AppendWindowKey(nil, 180_000, key)): of(3),
	})
	w.commit(p, 2, map[string][]byte{string(store.AppendSessionKey(nil, key, store.Span{Start: 10, End: 30})): of(4)})
	w.commit(p, 3, map[string][]byte{
		string(store.AppendVersionKey(nil, key, 100)): append([]byte{1}, of(5)...),
		string(store.AppendVersionKey(nil, key, 200)): append([]byte{1}, of(6)...),
	})
	w.commit(p, 4, map[string][]byte{
		string(store.AppendListKey(nil, key, 0)): append([]byte{1}, of(8)...),
		string(store.AppendListKey(nil, key, 1)): append([]byte{1}, of(9)...),
	})
	counts, windows, sessions := reader(t, c, "counts"), reader(t, c, "windows"), reader(t, c, "sessions")
	prices, lists := reader(t, c, "prices"), reader(t, c, "lists")
	ms := time.UnixMilli
	var none time.Time

	res, err := counts.Get(ctx, "a")
	if err != nil || res.Value != 7 || !res.Found || res.Seq != 5 || res.Watermark != 5000 || res.Task.Partition != p || res.Time != ms(1000) {
		t.Errorf("Get: %+v, %v", res, err)
	}
	if res, err = counts.Get(ctx, "b"); err != nil || res.Found || res.Task.Partition != partitionOf("b") {
		t.Errorf("Get of nothing: %+v, %v", res, err)
	}
	for i, q := range []struct {
		rows iter.Seq2[client.Row[string, int64], error]
		want string
	}{
		{counts.Scan(ctx), "a=7"},
		{counts.Scan(ctx, client.Filter("value > 7")), ""},
		{counts.Scan(ctx, client.InPartition((p+1)%partitions)), ""},
		{counts.Prefix(ctx, "a"), "a=7"},
		{counts.Prefix(ctx, "b"), ""},
		{counts.Range(ctx, "a", "b"), "a=7"},
		{windows.Windows(ctx, "a", ms(60_000), none), "a=2@60000-120000 a=3@120000-180000"},
		{windows.Windows(ctx, "a", none, none, client.Containing(ms(60_001))), "a=2@60000-120000"},
		{windows.AllWindows(ctx, none, ms(0)), "a=1@0-60000"},
		{sessions.Sessions(ctx, "a", ms(15), ms(16)), "a=4@10-30"},
		{sessions.AllSessions(ctx, ms(30), none), ""},
		{prices.History(ctx, "a", none, none), "a=6@200 a=5@100"},
		{prices.History(ctx, "a", none, ms(199)), "a=5@100"},
		{prices.Scan(ctx, client.AsOf(ms(150))), "a=5@100"},
		{lists.Values(ctx, "a", client.PageRows(1)), "a=8 a=9#1"},
		{lists.Values(ctx, "a", client.Limit(1)), "a=8"},
	} {
		if got := all(q.rows); got != q.want {
			t.Errorf("question %d: got %q, want %q", i, got, q.want)
		}
	}
	if res, err := prices.Get(ctx, "a", client.AsOf(ms(150))); err != nil || res.Value != 5 {
		t.Errorf("as of: %+v, %v", res, err)
	}
	found, err := counts.MultiGet(ctx, []string{"a", "b", "c", "d", "e"})
	if err != nil || !found[0].Found || found[0].Value != 7 || found[1].Found || found[4].Key != "e" || found[4].Meta == nil {
		t.Errorf("MultiGet: %+v, %v", found, err)
	}
}

// The errors of the real server are those of reads in its process.
func TestRealErrors(t *testing.T) {
	w := newWorld(t, 2)
	c := w.client(client.Config{Timeout: 300 * time.Millisecond})
	counts := reader(t, c, "counts")
	get := func(r *client.Reader[string, int64], opts ...client.Option) error {
		_, err := r.Get(t.Context(), "a", opts...)
		return err
	}
	rows := func(rows iter.Seq2[client.Row[string, int64], error]) (err error) {
		for _, err = range rows {
		}
		return err
	}
	p := partitionOf("a")
	for want, err := range map[query.Reason]error{
		query.StoreNotFound:       get(reader(t, c, "nowhere")),
		query.WrongKind:           rows(counts.Windows(t.Context(), "a", time.Time{}, time.Time{})),
		query.InvalidRequest:      rows(counts.Scan(t.Context(), client.Filter("value >"))),
		query.PositionNotReached:  get(counts, client.AtPosition(query.Position{{Name: "main", Partition: p, Commit: true, Number: 9}})),
		query.WatermarkNotReached: get(counts, client.AtWatermark(time.UnixMilli(6000))),
	} {
		if !errors.Is(err, &query.Error{Reason: want}) {
			t.Errorf("want %s: %v", want, err)
		}
	}
	w.move(p, -1)
	w.publish()
	if err := get(counts); !errors.Is(err, &query.Error{Reason: query.NoOwner}) {
		t.Errorf("no owner: %v", err)
	}
	err := rows(counts.Scan(t.Context()))
	var e *query.Error
	if !errors.As(err, &e) || e.Reason != query.Partial || !slices.Equal(e.Missing, []int32{p}) {
		t.Errorf("partial: %v", err)
	}
	keys := []string{"a", "b", "c", "d"}
	found, err := counts.MultiGet(t.Context(), keys, client.AllowPartial())
	if !errors.As(err, &e) || e.Reason != query.Partial || !slices.Equal(e.Missing, []int32{p}) || len(found) != len(keys) {
		t.Fatalf("partial: %+v, %v", found, err)
	}
	for i, f := range found {
		if f.Missing != (partitionOf(keys[i]) == p) {
			t.Errorf("%s: %+v", keys[i], f)
		}
	}
	if err := rows(counts.Scan(t.Context(), client.AllowPartial())); !errors.Is(err, &query.Error{Reason: query.Partial}) {
		t.Errorf("what there is, and then the error: %v", err)
	}
}

// Tasks move at random, under the eyes of servers that believe in old maps, while keys count up: sessions never see a count go
// down, see what was committed before they asked, scans and watches agree, and nothing is an error.
func TestRealMoves(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := newWorld(t, 3)
	c := w.client(client.Config{Timeout: 20 * time.Second})
	keys := make([]string, 24)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%02d", i)
		w.commit(partitionOf(keys[i]), 0, map[string][]byte{keys[i]: of(1)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var movers, readers sync.WaitGroup
	stop := make(chan struct{})
	movers.Go(func() { // a move every few milliseconds; the news take a while
		random := rand.New(rand.NewPCG(seed, 1))
		for {
			select {
			case <-stop:
				w.publish()
				return
			case <-time.After(time.Duration(random.IntN(8)) * time.Millisecond):
			}
			w.move(random.Int32N(partitions), random.IntN(3))
			if random.IntN(3) > 0 {
				w.publish(random.IntN(3), random.IntN(3))
			}
		}
	})
	last := make([]int64, len(keys))
	for g := range 4 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)+2))
			s := client.NewSession(nil)
			r := reader(t, c, "counts").In(s)
			seen := map[string]int64{}
			look := func(key string, n int64) {
				if n < seen[key] {
					t.Errorf("%s went from %d back to %d", key, seen[key], n)
				}
				seen[key] = n
			}
			for range 150 {
				i := random.IntN(len(keys)/4)*4 + g // a writer has keys of its own
				switch random.IntN(6) {
				case 0:
					found, err := r.MultiGet(ctx, keys)
					if err != nil {
						t.Errorf("MultiGet: %v", err)
						return
					}
					for _, f := range found {
						look(f.Key, f.Value)
					}
				case 1:
					n := 0
					for row, err := range r.Scan(ctx, client.PageRows(5)) {
						if err != nil {
							t.Errorf("Scan: %v", err)
							return
						}
						look(row.Key, row.Value)
						n++
					}
					if n != len(keys) {
						t.Errorf("Scan: %d rows, want %d", n, len(keys))
					}
				case 2, 3:
					last[i]++
					s.Saw(w.commit(partitionOf(keys[i]), 0, map[string][]byte{keys[i]: of(last[i] + 1)}))
					seen[keys[i]] = last[i] + 1
					fallthrough
				default:
					res, err := r.Get(ctx, keys[i])
					if err != nil || !res.Found {
						t.Errorf("Get: %+v, %v", res, err)
						return
					}
					if look(keys[i], res.Value); res.Value != last[i]+1 {
						t.Errorf("%s: read %d, written %d", keys[i], res.Value, last[i]+1)
					}
				}
			}
		})
	}
	// A watcher of everything, which breaks off and comes back with its token. It ends when it has the last value of all keys.
	const end = 1 << 40
	var watcher sync.WaitGroup
	watcher.Go(func() {
		random := rand.New(rand.NewPCG(seed, 9))
		r := reader(t, c, "counts")
		rows := map[string]int64{}
		token := ""
		for {
			for e, err := range r.Watch(ctx, client.From(token)) {
				if err != nil {
					t.Errorf("Watch: %v; it has %v", err, rows)
					return
				}
				if e.Reset {
					for k := range rows {
						if partitionOf(k) == e.Partition {
							delete(rows, k)
						}
					}
				}
				for _, row := range e.Rows {
					rows[row.Key] = row.Value
				}
				if e.Token != "" {
					token = e.Token
				}
				if !slices.ContainsFunc(keys, func(k string) bool { return rows[k] != end }) {
					return
				}
				if random.IntN(20) == 0 && token != "" {
					break
				}
			}
		}
	})
	readers.Wait()
	close(stop)
	movers.Wait()
	for _, k := range keys {
		w.commit(partitionOf(k), 0, map[string][]byte{k: of(end)})
	}
	watcher.Wait()
}
