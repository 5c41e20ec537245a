package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/verify/witness"
	"github.com/tidemark/tidemark/internal/verify/workload"
)

// settleCopies lets the snapshots come to rest in a world that is calm: all that are retained are then new, and what nobody
// needs has been collected.
func (w *World) settleCopies() {
	if w.bucket == nil {
		return
	}
	w.bucket.calm()
	w.calmAt = time.Now()
	for range 2*w.set.Copies.Keep + 3 {
		w.Produce(20)
		w.Sleep(w.set.Copies.Interval + 400*time.Millisecond)
	}
	w.Sleep(w.set.Copies.Grace)
	for range 2 {
		w.Produce(20)
		w.Sleep(w.set.Copies.Interval + time.Second)
	}
}

// judgeCopies looks at what is in the bucket when the last instance has stopped. It returns the databases that were made of
// snapshots.
func (w *World) judgeCopies(ctx context.Context, names changelog.Names) []*witness.Disk {
	plan, err := workload.Topology(App, w.topics).Build()
	if err != nil {
		w.fail("%v", err)
		return nil
	}
	retained, err := witness.ReadRetained(ctx, w.client, names, plan)
	if err != nil {
		w.fail("%v", err)
		return nil
	}
	var disks []*witness.Disk
	needed := make(map[string]bool)
	blocked := make(map[snapshot.Task]bool) // tasks of which nothing may be deleted, and those whose snapshots are old
	for _, r := range retained {
		task := snapshot.Task{App: App, Sub: r.Task.Sub, Partition: r.Task.Partition}
		if len(r.Refs) == 0 {
			w.fail("there is no snapshot of %s", r.Task)
		}
		blocked[task] = len(r.Refs) == 0 || time.UnixMilli(r.Refs[len(r.Refs)-1].Created).Before(w.calmAt.Add(w.set.Copies.Grace))
		whole, all := 0, true // and all of them made since nothing is wrong any more
		for _, ref := range r.Refs {
			fresh := time.UnixMilli(ref.Created).After(w.calmAt)
			all = all && fresh
			needed[ref.Key] = true
			if m, err := snapshot.Load(ctx, w.bucket.mem, ref); err != nil {
				blocked[task] = true
			} else {
				for _, f := range m.Files {
					needed[m.Object(f)] = true
				}
			}
			d, err := r.OpenSnapshot(ctx, w.bucket.mem, ref)
			switch {
			case err == nil:
				whole++
				disks = append(disks, d)
			case !w.bucket.excuses(ctx, ref, all && ref == r.Refs[len(r.Refs)-1]):
				w.fail("snapshot of %s at commit %d: %v", r.Task, ref.Seq, err)
			default:
				w.note("snapshot of %s at commit %d is of no use: %v", r.Task, ref.Seq, err)
			}
		}
		w.note("%s: %d snapshots, %d whole, all of them made at the end: %v", r.Task, len(r.Refs), whole, all)
	}
	w.judgeGarbage(ctx, needed, blocked)
	w.mu.Lock()
	w.compared += len(disks)
	w.mu.Unlock()
	return disks
}

// judgeGarbage wants everything collected that is old and that no retained snapshot needs.
func (w *World) judgeGarbage(ctx context.Context, needed map[string]bool, blocked map[snapshot.Task]bool) {
	err := w.bucket.mem.List(ctx, "", func(i objects.Info) error {
		if needed[i.Key] || i.Modified.After(w.calmAt) {
			return nil
		}
		for task, b := range blocked {
			if strings.HasPrefix(i.Key, task.Prefix()) && !b {
				w.fail("%s is needed by nobody and is still there, it was put %v before the end", i.Key, w.calmAt.Sub(i.Modified))
			}
		}
		return nil
	})
	if err != nil {
		w.fail("%v", err)
	}
}

// excuses says whether something a snapshot needs is not what it should be because the world has damaged it. What a listing
// shows to be gone must be there again in the newest snapshot.
func (b *bucket) excuses(ctx context.Context, ref snapshot.Ref, newest bool) bool {
	if !b.intact(ctx, ref.Key) {
		hurt, _ := b.isHurt(ref.Key)
		return hurt && !newest
	}
	m, err := snapshot.Load(ctx, b.mem, ref)
	if err != nil {
		return false
	}
	broken := false
	for _, f := range m.Files {
		key := m.Object(f)
		if f.Data != nil || b.intact(ctx, key) {
			continue
		}
		if hurt, hidden := b.isHurt(key); !hurt || newest && !hidden {
			return false
		}
		broken = true
	}
	return broken
}

// intact says whether an object is there and has the content its key ends with the sum of.
func (b *bucket) intact(ctx context.Context, key string) bool {
	r, err := b.mem.Get(ctx, key, 0, -1)
	if err != nil {
		return false
	}
	var buf bytes.Buffer
	_, err = io.Copy(&buf, r)
	sum := sha256.Sum256(buf.Bytes())
	return errors.Join(err, r.Close()) == nil && strings.HasSuffix(key, hex.EncodeToString(sum[:]))
}
