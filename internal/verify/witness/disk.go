package witness

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// Disk is the content of one task's database: it must be what the changelogs give up to its positions, without the rows
// below its floors, which are windows and ids that have expired.
type Disk struct {
	Owner  string // the instance, for messages
	Task   processor.TaskID
	Rows   map[string]check.Rows // by store
	Ends   map[string]int64      // position per store
	floors map[string]string     // by store
	specs  map[string]store.Spec
}

// row returns the row that a record of a store's changelog is about, by the store's layout. ok is false if it has expired.
func (d *Disk) row(name string, rec *kgo.Record) (key string, value []byte, ok bool, err error) {
	k, value := rec.Key, rec.Value
	if l := d.specs[name].Layout; l != nil {
		var header []byte
		for _, h := range rec.Headers {
			if h.Key == changelog.StateHeader {
				header = h.Value
			}
		}
		if k, value, err = l.Import(nil, k, value, header, rec.Timestamp.UnixMilli()); err != nil {
			return "", nil, false, fmt.Errorf("witness: changelog of %s at %d@%d: %w", name, rec.Partition, rec.Offset, err)
		}
	}
	return string(k), value, string(k) >= d.floors[name], nil
}

// ReadDisk reads a database whose stores are these. It returns nil for one without any commit.
func ReadDisk(owner string, task processor.TaskID, db store.DB, specs []store.Spec) (*Disk, error) {
	blob, err := store.ReadProgress(db)
	if err != nil || blob == nil {
		return nil, err
	}
	p, err := changelog.DecodeProgress(blob)
	if err != nil {
		return nil, err
	}
	d := &Disk{
		Owner: owner, Task: task, Rows: make(map[string]check.Rows), Ends: make(map[string]int64),
		floors: make(map[string]string), specs: make(map[string]store.Spec),
	}
	for _, e := range p.Ends {
		d.Ends[e.Store] = e.End
	}
	state, err := store.Open(db, specs, store.Options{})
	if err != nil {
		return nil, err
	}
	for i, s := range specs {
		if !s.Changelog {
			continue // made of what the others hold
		}
		rows := make(check.Rows)
		if err := state.Rows(i, func(key, row []byte) { rows[string(key)] = string(row) }); err != nil {
			return nil, err
		}
		d.Rows[s.ID], d.floors[s.ID], d.specs[s.ID] = rows, string(state.Floor(i)), s
	}
	return d, nil
}

// CompareDisks replays the changelogs of the app, read_committed from their beginnings, and compares every
// disk with what they give up to its positions. Of windows and ids that have expired since, neither side counts: their
// changelogs are cut off at the front.
func CompareDisks(ctx context.Context, client []kgo.Opt, names changelog.Names, disks []*Disk) (*check.Report, error) {
	type replay struct {
		d     *Disk
		store string
		log   check.Rows
		trail string          // offsets replayed, for messages
		after map[string]bool // keys written beyond the position: compaction may have removed their earlier records
	}
	byLog := make(map[topicPartition][]*replay)
	var all []*replay
	var topics []string
	for _, d := range disks {
		for s := range d.Rows {
			r := &replay{d: d, store: s, log: make(check.Rows), after: make(map[string]bool)}
			all = append(all, r)
			tp := topicPartition{names.Changelog(s), d.Task.Partition}
			if byLog[tp] == nil {
				topics = append(topics, tp.topic)
			}
			byLog[tp] = append(byLog[tp], r)
		}
	}
	out := new(check.Report)
	if len(all) == 0 {
		return out, nil
	}
	var bad error
	f, err := newFollower(client, topics, func(rec *kgo.Record) {
		for _, r := range byLog[topicPartition{rec.Topic, rec.Partition}] {
			key, value, ok, err := r.d.row(r.store, rec)
			switch {
			case err != nil:
				bad = err
			case !ok:
			case rec.Offset < r.d.Ends[r.store]:
				r.log.Replay([]byte(key), value, rec.Timestamp.UnixMilli())
				if len(r.trail) < 200 {
					r.trail += fmt.Sprintf(" %d:%d", rec.Offset, rec.ProducerID)
				}
			default:
				r.after[key] = true
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer f.close()
	ends, err := f.ends(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.upTo(ctx, ends); err != nil {
		return nil, err
	}
	if bad != nil {
		return nil, bad
	}
	floors, err := readFloors(ctx, client, names, disks)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		floor := floors[r.d.Task][r.store]
		expired := func(key, _ string) bool { return key < floor }
		maps.DeleteFunc(r.log, expired)
		maps.DeleteFunc(r.d.Rows[r.store], expired)
		for k := range r.after {
			if _, ok := r.log[k]; !ok {
				delete(r.d.Rows[r.store], k)
			}
		}
		out.Add(check.Compare(fmt.Sprintf("store %s of task %s on %s up to %d, offset:producer%s", r.store, r.d.Task, r.d.Owner, r.d.Ends[r.store], r.trail), r.log, r.d.Rows[r.store]))
	}
	return out, nil
}

// readFloors returns the floors of stores in the last committed progress of tasks: what lies below has expired.
func readFloors(ctx context.Context, client []kgo.Opt, names changelog.Names, disks []*Disk) (map[processor.TaskID]map[string]string, error) {
	subs := make(map[string]bool)
	for _, d := range disks {
		subs[d.Task.Sub] = true
	}
	last, err := readProgress(ctx, client, names, slices.Sorted(maps.Keys(subs)))
	if err != nil {
		return nil, err
	}
	out := make(map[processor.TaskID]map[string]string)
	for id, p := range last {
		trims, err := changelog.ParseTrims(p.Section(changelog.SectionTrims))
		if err != nil {
			return nil, fmt.Errorf("witness: progress of %s: %w", id, err)
		}
		out[id] = make(map[string]string)
		for _, t := range trims {
			out[id][t.Store] = string(t.Floor)
		}
	}
	return out, nil
}

// readProgress returns the last committed progress of every task of some sub-topologies.
func readProgress(ctx context.Context, client []kgo.Opt, names changelog.Names, subs []string) (map[processor.TaskID]*changelog.Progress, error) {
	byTopic := make(map[string]string)
	for _, sub := range subs {
		byTopic[names.Progress(sub)] = sub
	}
	last := make(map[processor.TaskID][]byte)
	f, err := newFollower(client, slices.Sorted(maps.Keys(byTopic)), func(rec *kgo.Record) {
		last[processor.TaskID{Sub: byTopic[rec.Topic], Partition: rec.Partition}] = rec.Value
	})
	if err != nil {
		return nil, err
	}
	defer f.close()
	ends, err := f.ends(ctx)
	if err == nil {
		err = f.upTo(ctx, ends)
	}
	if err != nil {
		return nil, err
	}
	out := make(map[processor.TaskID]*changelog.Progress)
	for id, b := range last {
		if out[id], err = changelog.DecodeProgress(b); err != nil {
			return nil, fmt.Errorf("witness: progress of %s: %w", id, err)
		}
	}
	return out, nil
}
