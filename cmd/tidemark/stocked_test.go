package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/internal/taskstore"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// stockedSpecs are stores of every kind, as topologies declare them.
var stockedSpecs = []store.Spec{
	{ID: "totals", KeySchema: "string", ValueSchema: "json:{amount:int}", Changelog: true},
	{ID: "per-minute", Kind: store.Window, KeySchema: "string", ValueSchema: "int64 in tumbling 1m; accumulating", Changelog: true},
	{ID: "visits", Kind: store.Session, KeySchema: "string", ValueSchema: "int64", Changelog: true},
	{ID: "prices", Kind: store.Versioned, KeySchema: "string", ValueSchema: "float64", Changelog: true},
	{ID: "recent", Kind: store.List, KeySchema: "int64", ValueSchema: "string", Changelog: true},
	{ID: "passes", Kind: store.Expiring, KeySchema: "string", ValueSchema: "version 2 of string", Changelog: true},
	{ID: "wake-ups", Kind: store.Timers, KeySchema: "string", ValueSchema: "event time", Changelog: true},
	{ID: "ids", Kind: store.Dedup, KeySchema: "string", ValueSchema: "ids string in buckets", Changelog: true},
	{ID: "profiles", KeySchema: "avro:00ff", ValueSchema: "proto:shop.Profile", Changelog: true},
}

// total is a value that is JSON.
type total struct {
	Amount int64 `json:"amount"`
}

// stocked is the database of a task whose snapshots are made.
type stocked struct {
	t         *testing.T
	id        processor.TaskID
	dir       *taskstore.Dir
	db        store.DB
	state     *store.State
	manifests []*snapshot.Manifest
	memo      snapshot.Memo
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newStocked(t *testing.T, partition int32) *stocked {
	s := &stocked{t: t, id: processor.TaskID{Sub: "by-customer", Partition: partition}}
	// Without Quiet compactions would come when they like.
	s.dir = taskstore.New(taskstore.Options{Path: "/state", FS: pebblestore.NewMemFS(), Quiet: true})
	s.db = must(s.dir.Open(s.id))(t)
	s.state = must(store.Open(s.db, stockedSpecs, store.Options{}))(t)
	t.Cleanup(func() {
		if err := errors.Join(s.state.Close(), s.db.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// everything puts rows into all stores.
func (s *stocked) everything() {
	t := s.t
	totals := must(store.ViewOf(s.state, "totals", must(codec.JSON[total]())(t)))(t)
	windows := must(store.WindowViewOf(s.state, "per-minute", codec.Bytes()))(t)
	visits := must(store.SessionViewOf(s.state, "visits", codec.Int64()))(t)
	prices := must(store.VersionedViewOf(s.state, "prices", codec.Float64()))(t)
	recent := must(store.ListViewOf(s.state, "recent", codec.String()))(t)
	passes := must(store.ExpiringViewOf(s.state, "passes", codec.Versioned(codec.String(), 2, nil)))(t)
	wakeUps := must(store.TimerViewOf(s.state, "wake-ups"))(t)
	ids := must(store.DedupViewOf(s.state, "ids"))(t)
	profiles := must(store.ViewOf(s.state, "profiles", codec.Bytes()))(t)
	pane := func(state string, n int64) []byte {
		b := append(binary.AppendUvarint(nil, uint64(len(state))), state...)
		return binary.BigEndian.AppendUint64(b, uint64(n))
	}
	var err error
	do := func(more ...error) { err = errors.Join(append(more, err)...) }
	for i, key := range []string{"eu-1", "eu-2", "us-1"} {
		do(totals.Put([]byte(key), total{int64(i+1) * 100}, noon+int64(i)))
		r, rerr := windows.Row(noon+60_000, []byte(key))
		if do(rerr); rerr == nil {
			windows.Set(r, pane("state", int64(i)), noon)
		}
	}
	do(visits.Put([]byte("eu-1"), store.Span{Start: noon, End: noon + 500}, 3, noon))
	_, perr := prices.Put([]byte("tea"), 2.5, noon, noon-1)
	_, derr := prices.Delete([]byte("tea"), noon+9, noon-1)
	do(perr, derr)
	do(recent.Append(binary.BigEndian.AppendUint64(nil, 7), "first", noon), recent.Append(binary.BigEndian.AppendUint64(nil, 7), "second", noon))
	do(passes.Put([]byte("eu-1"), "gold", noon, noon+3600_000), wakeUps.Set([]byte("eu-1"), []byte("mail"), noon+42))
	_, aerr := ids.Add(7, &[16]byte{1, 2, 3}, noon)
	do(aerr, profiles.Put([]byte{0, 1}, []byte{8, 1}, noon))
	// A string that is none.
	do(totals.Put([]byte("\xff"), total{}, noon))
	if err != nil {
		t.Fatal(err)
	}
}

// more changes one row.
func (s *stocked) more(key string, amount int64) {
	v := must(store.ViewOf(s.state, "totals", must(codec.JSON[total]())(s.t)))(s.t)
	if err := v.Put([]byte(key), total{amount}, noon+1000); err != nil {
		s.t.Fatal(err)
	}
}

// snapshot commits and publishes as the engine does.
func (s *stocked) snapshot(to objects.Store, seq uint64) {
	t := s.t
	t.Helper()
	if err := errors.Join(s.state.Seal(nil), s.state.Commit(fmt.Append(nil, seq), 1), s.state.Persist(1, true), s.db.Flush()); err != nil {
		t.Fatal(err)
	}
	cp := must(s.dir.Checkpoint(s.id, s.db))(t)
	head := snapshot.Manifest{
		App: "shop", Sub: s.id.Sub, Partition: s.id.Partition, Seq: seq, Writer: 1, Created: noon + int64(seq)*1000, Time: noon + int64(seq)*1000 - 50,
		W: noon, Format: pebblestore.FormatVersion(), Fingerprint: "f", Ends: []snapshot.End{{Store: "totals", End: int64(seq) * 10}, {Store: "visits", End: 3}},
	}
	_, m, _, err := snapshot.New(to, snapshot.Options{}).Upload(t.Context(), cp, head, s.manifests, &s.memo)
	if err := errors.Join(err, cp.Remove()); err != nil {
		t.Fatal(err)
	}
	s.manifests = append(s.manifests, m)
}

// stock fills a store with snapshots of two tasks of an app, and one of another app.
func stock(t *testing.T, to objects.Store) {
	t.Helper()
	a, b := newStocked(t, 0), newStocked(t, 1)
	a.everything()
	a.snapshot(to, 41)
	a.more("eu-1", 150)
	a.snapshot(to, 57)
	for seq := range uint64(5) {
		b.more("eu-7", 1)
		b.snapshot(to, 8+seq)
	}
	other := snapshot.Manifest{App: "billing", Sub: "s", Seq: 1}
	if _, _, _, err := snapshot.New(to, snapshot.Options{}).Upload(t.Context(), nothing{}, other, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// nothing is a database without files.
type nothing struct{}

func (nothing) Files() ([]snapshot.LocalFile, error) { return nil, nil }

func (nothing) Open(string) (io.ReaderAt, io.Closer, error) { return nil, nil, errors.New("no files") }

// damage carries out a line of a golden file on the snapshots of a task: what to do, the task, the commit, and the suffix
// of a file's name, or "manifest".
func damage(t *testing.T, s objects.Store, line string) {
	t.Helper()
	var do, task, file string
	var seq uint64
	if _, err := fmt.Sscan(line, &do, &task, &seq, &file); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	refs := must(snapshot.Find(t.Context(), s, "shop/"+task+"/"))(t)
	for _, r := range refs {
		if r.Seq != seq {
			continue
		}
		if file == "manifest" {
			harm(t, s, r.Key, do)
			return
		}
		m := must(snapshot.Load(t.Context(), s, r))(t)
		for _, f := range m.Files {
			if f.Data == nil && strings.HasSuffix(f.Name, file) {
				harm(t, s, m.Object(f), do)
				return
			}
		}
	}
	t.Fatalf("%s: there is none", line)
}

func harm(t *testing.T, s objects.Store, key, do string) {
	t.Helper()
	b := must(fetched(t.Context(), s, key))(t)
	switch do {
	case "flip":
		b[len(b)/2] ^= 1
	case "cut":
		b = b[:len(b)-1]
	case "lengthen":
		b = append(b, 0)
	case "remove":
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		return
	case "copy": // as a broken-off upload leaves it
		key = filepath.Dir(key) + "/" + strings.Repeat("0", 64)
	default:
		t.Fatalf("%s is nothing to do", do)
	}
	if err := s.Put(t.Context(), key, objects.Bytes(b)); err != nil {
		t.Fatal(err)
	}
}

func fetched(ctx context.Context, s objects.Store, key string) ([]byte, error) {
	r, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}
