// Package bare is the least a Go program on the same Kafka client and the same database can do to restore a table from
// its changelog: fetch, keep the last value of every key in a map, sort, ingest. It verifies nothing and knows neither
// tasks nor groups. It runs on the caller's goroutine.
package bare

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/bench/internal/system"
	"github.com/tidemark/tidemark/store/pebblestore"
)

// Main restores every partition of a topic into a database of its own below the state directory and prints an event
// when it begins and when it has ended. The memory limit divides as Tidemark's does.
func Main(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("bare", flag.ExitOnError)
	addr := f.String("bootstrap", "127.0.0.1:9092", "broker address")
	topic := f.String("topic", "", "changelog")
	state := f.String("state", "", "directory of the databases, one per partition")
	cache := f.Int64("cache", 256<<20, "memory limit in bytes: half for the maps, a quarter for the block cache")
	if err := f.Parse(args); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(*addr), kgo.ConsumeTopics(*topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, *topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	system.PrintEvent(out, time.Now(), "restore", "begin")
	shared := pebblestore.NewShared(pebblestore.SharedOptions{CacheBytes: *cache / 4})
	tables := map[int32]*table{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			tables[o.Partition] = &table{left: o.Offset, limit: *cache / 2 / int64(len(ends[*topic]))}
		}
	})
	for p, t := range tables {
		dir := filepath.Join(*state, strconv.Itoa(int(p)))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if t.db, err = pebblestore.Open(dir, pebblestore.Options{Shared: shared}); err != nil {
			return err
		}
		t.reset()
	}
	if err := read(ctx, cl, tables); err != nil {
		return err
	}
	var bytes int64
	for _, t := range tables {
		bytes += t.bytes
		err = errors.Join(err, t.load())
	}
	system.PrintEvent(out, time.Now(), "restore", "end", bytes)
	for _, t := range tables {
		err = errors.Join(err, t.db.Close())
	}
	return errors.Join(err, shared.Close())
}

// read fills the tables until every partition has been read to its end.
func read(ctx context.Context, cl *kgo.Client, tables map[int32]*table) error {
	for left := len(tables); left > 0; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			t := tables[r.Partition]
			if t == nil || r.Offset >= t.left || failed != nil {
				return
			}
			if r.Offset == t.left-1 {
				left--
			}
			if !r.Attrs.IsControl() {
				failed = t.add(r)
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// table holds the last values of one partition.
type table struct {
	db          *pebblestore.DB
	left        int64 // offset to end at
	bytes       int64 // read so far
	size, limit int64 // of what is in memory
	rows        map[string][]byte
	slab        []byte
}

const (
	perRow   = 64 // rough cost of a row in the map, bytes
	slabSize = 1 << 20
)

func (t *table) reset() { t.size, t.rows, t.slab = 0, map[string][]byte{}, nil }

// add keeps the record's value in the layout of the store: time, then value.
func (t *table) add(r *kgo.Record) error {
	t.bytes += int64(len(r.Key) + len(r.Value))
	if r.Value == nil {
		return fmt.Errorf("bare: a deletion at offset %d", r.Offset)
	}
	old, ok := t.rows[string(r.Key)]
	if ok && len(old) == 8+len(r.Value) {
		binary.BigEndian.PutUint64(old, uint64(r.Timestamp.UnixMilli()))
		copy(old[8:], r.Value)
		return nil
	}
	n := 8 + len(r.Value)
	if cap(t.slab)-len(t.slab) < n {
		t.slab = make([]byte, 0, max(slabSize, n))
	}
	at := len(t.slab)
	t.slab = binary.BigEndian.AppendUint64(t.slab, uint64(r.Timestamp.UnixMilli()))
	t.slab = append(t.slab, r.Value...)
	t.rows[string(r.Key)] = t.slab[at:len(t.slab):len(t.slab)]
	if t.size += int64(n + len(r.Key) + perRow); t.size >= t.limit {
		return t.load()
	}
	return nil
}

// load sorts what is in memory and makes it part of the database.
func (t *table) load() error {
	r := &run{rows: t.rows, keys: make([]string, 0, len(t.rows))}
	for k := range t.rows {
		r.keys = append(r.keys, k)
	}
	slices.Sort(r.keys)
	err := t.db.Load(r)
	t.reset()
	return err
}

// run gives the rows in order of their keys, as rows of the first store of a task.
type run struct {
	rows  map[string][]byte
	keys  []string
	key   []byte
	value []byte
}

func (r *run) Next() bool {
	if len(r.keys) == 0 {
		return false
	}
	r.key = append(append(r.key[:0], 1, 0), r.keys[0]...)
	r.value = r.rows[r.keys[0]]
	r.keys = r.keys[1:]
	return true
}

func (r *run) Key() []byte   { return r.key }
func (r *run) Value() []byte { return r.value }
func (r *run) End() []byte   { return nil }
