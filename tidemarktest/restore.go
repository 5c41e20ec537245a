package tidemarktest

import (
	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/store"
)

// disk is the database of a task as it lies on an instance's disk: closing it leaves it there.
type disk struct{ store.DB }

// Close implements store.DB.
func (d *disk) Close() error { return nil }

// restoreBytes is small, so that a restore writes in several steps.
const restoreBytes = 1 << 12

// restore gives a task its state as of its last commit, in the way the options say.
func (t *task) restore() error {
	if len(t.sub.Stores) == 0 {
		return nil
	}
	d := t.inst.disks[t.id]
	if d == nil || t.c.o.Restore == Changelog || t.last.seq == 0 {
		d = &disk{store.NewMem()}
		t.inst.disks[t.id] = d
	}
	if t.last.seq > 0 {
		if err := t.rollForward(d); err != nil {
			return err
		}
	}
	state, err := store.Open(d, t.sub.Stores, store.Options{})
	t.state = state
	return err
}

// rollForward applies the changelogs from where the database is.
func (t *task) rollForward(d *disk) error {
	from := make([]int64, len(t.sub.Stores))
	blob, err := store.ReadProgress(d)
	if err != nil {
		return err
	}
	if blob != nil {
		p, err := changelog.DecodeProgress(blob)
		if err != nil {
			return err
		}
		for i, spec := range t.sub.Stores {
			from[i], _ = p.End(spec.ID)
		}
	}
	bulk, err := store.NewBulk(d, t.sub.Stores, restoreBytes)
	if err != nil {
		return err
	}
	for i, l := range t.sub.changelogs {
		if l == nil {
			continue
		}
		if f := t.last.floors[i]; len(f) > 0 {
			bulk.Expire(i, f)
		}
		for _, ch := range l[t.id.Partition][from[i]:t.last.ends[i]] {
			if err := bulk.Add(i, ch.Key, ch.Value, ch.Header, ch.Time); err != nil {
				return err
			}
		}
	}
	return bulk.Finish(t.last.progress)
}
