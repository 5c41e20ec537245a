package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Collect deletes what no snapshot of the task needs and returns how many objects that were. It reads every manifest that
// refs name; while one cannot be read it deletes nothing. Since it lists the bucket anyway it also returns what Lost finds.
//
// It is for the owner of the task, right after a commit, never while it uploads. The refs are those of the progress record
// that was committed, and now was read before that commit began: whatever a later owner has put since is then younger than
// grace, even if this call runs an hour late on a machine that was asleep.
func Collect(ctx context.Context, store objects.Store, task Task, refs []Ref, now time.Time, grace time.Duration) (deleted int, lost []string, err error) {
	deleted, lost, err = collect(ctx, store, task, refs, now, grace)
	if err != nil {
		return deleted, lost, fmt.Errorf("snapshot: collect %v: %w", task, err)
	}
	return deleted, lost, nil
}

func collect(ctx context.Context, store objects.Store, task Task, refs []Ref, now time.Time, grace time.Duration) (int, []string, error) {
	var retained []*Manifest
	var unread error
	for _, r := range refs {
		m, err := Load(ctx, store, r)
		if err != nil {
			unread = cmp.Or(unread, err)
			continue
		}
		retained = append(retained, m)
	}
	var have []objects.Info
	err := store.List(ctx, task.Prefix(), func(i objects.Info) error {
		have = append(have, i)
		return nil
	})
	if err != nil {
		return 0, nil, cmp.Or(unread, err)
	}
	lost := Lost(have, retained)
	if unread != nil {
		return 0, lost, unread
	}
	garbage := Garbage(have, retained, refs, now, grace)
	if len(garbage) == 0 {
		return 0, lost, nil
	}
	if err := store.Delete(ctx, garbage...); err != nil {
		return 0, lost, err
	}
	return len(garbage), lost, nil
}

// Abandoned is how long nothing may have been put for a task nobody knows before its objects are deleted.
const Abandoned = 7 * 24 * time.Hour

// SweepApp deletes what is left of tasks that an app no longer has, and returns how many objects that were. The function
// live says whether it knows a task, and else which of its snapshots are still referred to, by savepoints for example. The
// objects of a known task are its owner's business. Those of an unknown one, which may be that of a member with another
// topology, are left alone until nothing has been put for it for the time abandoned.
//
// It is for one instance, now and then; now was read before the references were. A task that fails does not keep the
// others from being swept.
func SweepApp(ctx context.Context, store objects.Store, app string, live func(Task) (refs []Ref, known bool), now time.Time, abandoned time.Duration) (deleted int, err error) {
	newest := make(map[Task]time.Time)
	err = store.List(ctx, app+"/", func(i objects.Info) error {
		if k, ok := parseKey(i.Key); ok && i.Modified.After(newest[k.task]) {
			newest[k.task] = i.Modified
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("snapshot: sweep %s: %w", app, err)
	}
	var errs []error
	for _, task := range slices.SortedFunc(maps.Keys(newest), compareTasks) {
		refs, known := live(task)
		if known || now.Sub(newest[task]) <= abandoned {
			continue
		}
		n, _, err := Collect(ctx, store, task, refs, now, abandoned)
		deleted += n
		errs = append(errs, err)
	}
	return deleted, errors.Join(errs...)
}
