package witness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/taskstore"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store/pebblestore"
	"github.com/tidemark/tidemark/topology"
)

// Retained is what the last progress record of a task says of snapshots.
type Retained struct {
	Sub  *topology.Sub
	Task processor.TaskID
	Refs []snapshot.Ref // the oldest first
}

// ReadRetained reads the last progress records of all tasks with stores. Tasks without one are left out.
func ReadRetained(ctx context.Context, client []kgo.Opt, names changelog.Names, plan *topology.Plan) ([]Retained, error) {
	subs := make(map[string]*topology.Sub)
	for _, sub := range plan.Subs {
		if len(sub.Stores) > 0 {
			subs[sub.ID] = sub
		}
	}
	last, err := readProgress(ctx, client, names, slices.Sorted(maps.Keys(subs)))
	if err != nil {
		return nil, err
	}
	var out []Retained
	for id, p := range last {
		refs, err := snapshot.DecodeRefs(p.Section(changelog.SectionSnapshots))
		if err != nil {
			return nil, fmt.Errorf("witness: progress of %s: %w", id, err)
		}
		out = append(out, Retained{subs[id.Sub], id, refs})
	}
	slices.SortFunc(out, func(a, b Retained) int {
		return cmp.Or(cmp.Compare(a.Task.Sub, b.Task.Sub), cmp.Compare(a.Task.Partition, b.Task.Partition))
	})
	return out, nil
}

// OpenSnapshot makes a database, in memory, of one of the snapshots and reads it.
func (r Retained) OpenSnapshot(ctx context.Context, bucket objects.Store, ref snapshot.Ref) (*Disk, error) {
	m, err := snapshot.Load(ctx, bucket, ref)
	if err != nil {
		return nil, err
	}
	dir := taskstore.New(taskstore.Options{Path: "/", FS: pebblestore.NewMemFS()})
	fill, err := dir.Fill(r.Task)
	if err != nil {
		return nil, err
	}
	if err := snapshot.Download(ctx, bucket, m, fill, snapshot.Options{}); err != nil {
		_ = fill.Abort() // the file system goes with it
		return nil, err
	}
	if err := fill.Finish(); err != nil {
		return nil, err
	}
	db, err := dir.Open(r.Task)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return ReadDisk(fmt.Sprintf("snapshot of commit %d", ref.Seq), r.Task, db, r.Sub.Stores)
}
