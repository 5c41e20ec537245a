package system

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/s3"
	"github.com/tidemark/tidemark/internal/s3test"
)

// snapshots is the part of the options that configures snapshots.
type snapshots struct {
	store    string
	restore  string
	interval time.Duration
	grace    time.Duration
	delay    time.Duration
	rate     int64

	counts *counted
}

func (s *snapshots) flags(f *flag.FlagSet) {
	f.StringVar(&s.store, "snapshots", "", "where snapshots are: dir:PATH, or s3:BUCKET@URL for a server of internal/s3test; empty: none")
	f.StringVar(&s.restore, "restore", "auto", "how they are restored: auto, full or lazy")
	f.DurationVar(&s.interval, "snapshot-interval", 10*time.Minute, "time between two snapshots of a task; bytes of changelog do not matter")
	f.DurationVar(&s.grace, "snapshot-grace", 0, "age of objects that may be deleted, 0 for the default")
	f.DurationVar(&s.delay, "snapshot-delay", 0, "delay of every request to the object store")
	f.Int64Var(&s.rate, "snapshot-rate", 0, "bound of uploads and background fetches in bytes per second, 0 for the default, -1 for none")
}

// configure sets Config.Snapshots. The store counts what is asked of it.
func (s *snapshots) configure(c *tidemark.Config, out io.Writer) error {
	if s.store == "" {
		return nil
	}
	store, err := openStore(s.store)
	if err != nil {
		return err
	}
	if s.delay > 0 {
		store = objects.WithFaults(store, nil, func(objects.Op) objects.Fault { return objects.Fault{Delay: s.delay} })
	}
	s.counts = &counted{Store: store, tables: map[string]bool{}}
	c.Snapshots = tidemark.Snapshots{Store: s.counts, Interval: s.interval, ChangelogBytes: 1 << 40, BytesPerSecond: s.rate}
	c.Testing.SnapshotGrace = s.grace
	switch s.restore {
	case "auto":
	case "full":
		c.Snapshots.Restore = tidemark.RestoreFull
	case "lazy":
		c.Snapshots.Restore = tidemark.RestoreLazy
	default:
		return fmt.Errorf("no way of restoring %q", s.restore)
	}
	if told := c.Events.Phase; told != nil {
		c.Events.Phase = func(p tidemark.PhaseInfo) {
			if p.Phase == "running" {
				s.print(out) // before the event, for who reads it until then
			}
			told(p)
		}
	}
	return nil
}

func openStore(name string) (objects.Store, error) {
	if path, ok := strings.CutPrefix(name, "dir:"); ok {
		return objects.NewDir(path)
	}
	rest, ok := strings.CutPrefix(name, "s3:")
	bucket, endpoint, there := strings.Cut(rest, "@")
	if !ok || !there {
		return nil, fmt.Errorf("no object store %q", name)
	}
	return s3.New(context.Background(), s3.Options{
		Bucket: bucket, Endpoint: endpoint, PathStyle: true,
		Region: s3test.Region, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
	})
}

// print says what has been asked of the store so far.
func (s *snapshots) print(out io.Writer) {
	if s.counts == nil {
		return
	}
	c := s.counts.read()
	PrintEvent(out, time.Now(), "store", c.Gets, c.GetBytes, c.Puts, c.PutBytes, c.TableBytes, c.Deletes)
}

// Stored is what an instance has asked of the object store: requests, bytes that were read or sent, and the bytes of
// different table files among the latter. Deletes counts objects.
type Stored struct {
	Gets, GetBytes, Puts, PutBytes, TableBytes, Deletes int64
}

// ParseStored reads such an event; ok is false for others.
func ParseStored(e Event) (s Stored, ok bool) {
	to := []*int64{&s.Gets, &s.GetBytes, &s.Puts, &s.PutBytes, &s.TableBytes, &s.Deletes}
	if e.Kind != "store" || len(e.Fields) != len(to) {
		return s, false
	}
	for i, f := range e.Fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return s, false
		}
		*to[i] = n
	}
	return s, true
}

// counted is a store that counts. It may be used by several goroutines.
type counted struct {
	objects.Store

	mu     sync.Mutex
	n      Stored
	tables map[string]bool
}

func (c *counted) read() Stored {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counted) add(f func(*Stored)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.n)
}

func (c *counted) Put(ctx context.Context, key string, body *io.SectionReader) error {
	c.add(func(n *Stored) {
		n.Puts++
		n.PutBytes += body.Size()
		if strings.Contains(key, "/sst/") && !c.tables[key] {
			c.tables[key] = true
			n.TableBytes += body.Size()
		}
	})
	return c.Store.Put(ctx, key, body)
}

func (c *counted) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	c.add(func(n *Stored) { n.Gets++ })
	r, err := c.Store.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	return &countedBody{r, c}, nil
}

func (c *counted) Delete(ctx context.Context, keys ...string) error {
	err := c.Store.Delete(ctx, keys...)
	if err == nil {
		c.add(func(n *Stored) { n.Deletes += int64(len(keys)) })
	}
	return err
}

type countedBody struct {
	io.ReadCloser
	c *counted
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.add(func(s *Stored) { s.GetBytes += int64(n) })
	return n, err
}
