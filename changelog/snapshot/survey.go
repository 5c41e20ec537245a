package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Found is a manifest that a listing shows.
type Found struct {
	// Ref is its key and commit and, if it could be read, when it was made and how large all files are.
	Ref
	// Manifest is what it says, nil if it cannot be read.
	Manifest *Manifest
	// Err is why it cannot: ErrDamaged or a *VersionError.
	Err error
}

// Share is what two snapshots of a task have in common.
type Share struct {
	With  Ref
	Files int   // that are objects of their own
	Bytes int64 // of them
}

// Holding is what a store holds of one task.
type Holding struct {
	Task Task
	// Found are the manifests, ascending by commit.
	Found []Found
	// Objects and Bytes are all objects of the task, manifests included.
	Objects int
	Bytes   int64
	// Orphans and OrphanBytes are the files among them that none of the manifests names: parts of an upload that runs or was
	// broken off, and what a collection has not deleted yet. While a manifest cannot be read they may be files of it.
	Orphans     int
	OrphanBytes int64
}

// Survey is for people who look into a bucket: it lists what there is of an app and reads the manifests, by task. As with
// Find, a manifest that is there need not be one that a progress record refers to. What is deleted meanwhile is left out.
// Errors are those of the store.
func Survey(ctx context.Context, store objects.Store, app string) ([]*Holding, error) {
	listed := make(map[Task][]objects.Info)
	err := store.List(ctx, app+"/", func(i objects.Info) error {
		if k, ok := parseKey(i.Key); ok {
			listed[k.task] = append(listed[k.task], i)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: survey %s: %w", app, err)
	}
	var out []*Holding
	for _, task := range slices.SortedFunc(maps.Keys(listed), compareTasks) {
		h, err := hold(ctx, store, task, listed[task])
		if err != nil {
			return nil, fmt.Errorf("snapshot: survey %s: %w", app, err)
		}
		out = append(out, h)
	}
	return out, nil
}

// hold sums up the objects of one task.
func hold(ctx context.Context, store objects.Store, task Task, listed []objects.Info) (*Holding, error) {
	h := &Holding{Task: task, Objects: len(listed)}
	named := make(map[string]bool)
	for _, i := range listed {
		h.Bytes += i.Size
		k, _ := parseKey(i.Key)
		if !k.manifest {
			continue
		}
		f := Found{Ref: Ref{Key: i.Key, Seq: k.seq}}
		f.Manifest, f.Err = Load(ctx, store, f.Ref)
		var version *VersionError
		switch {
		case f.Err == nil:
			f.Created, f.Bytes = f.Manifest.Created, f.Manifest.Bytes()
			for _, file := range f.Manifest.Files {
				if file.Data == nil {
					named[f.Manifest.Object(file)] = true
				}
			}
		case errors.Is(f.Err, objects.ErrNotFound):
			h.Objects--
			h.Bytes -= i.Size
			continue
		case !errors.Is(f.Err, ErrDamaged) && !errors.As(f.Err, &version):
			return nil, f.Err
		}
		h.Found = append(h.Found, f)
	}
	slices.SortStableFunc(h.Found, func(a, b Found) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, i := range listed {
		if k, _ := parseKey(i.Key); !k.manifest && !named[i.Key] {
			h.Orphans++
			h.OrphanBytes += i.Size
		}
	}
	return h, nil
}

// Shares returns what the snapshot at an index of Found has in common with each of the others, leaving out those with which
// it shares nothing.
func (h *Holding) Shares(at int) []Share {
	m := h.Found[at].Manifest
	if m == nil {
		return nil
	}
	var out []Share
	for i, f := range h.Found {
		if i == at || f.Manifest == nil {
			continue
		}
		theirs := make(map[string]bool)
		for _, file := range f.Manifest.Files {
			if file.Data == nil {
				theirs[f.Manifest.Object(file)] = true
			}
		}
		s := Share{With: f.Ref}
		for _, file := range m.Files {
			if file.Data == nil && theirs[m.Object(file)] {
				s.Files++
				s.Bytes += file.Size
			}
		}
		if s.Files > 0 {
			out = append(out, s)
		}
	}
	return out
}
