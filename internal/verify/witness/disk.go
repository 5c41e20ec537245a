package witness

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// Disk is the content of one task's database: it must be what the changelogs give up to its positions.
type Disk struct {
	Owner string // the instance, for messages
	Task  processor.TaskID
	Rows  map[string]check.Rows // by store
	Ends  map[string]int64      // position per store
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
	d := &Disk{Owner: owner, Task: task, Rows: make(map[string]check.Rows), Ends: make(map[string]int64)}
	for _, e := range p.Ends {
		d.Ends[e.Store] = e.End
	}
	state, err := store.Open(db, specs, store.Options{})
	if err != nil {
		return nil, err
	}
	for i, s := range specs {
		rows := make(check.Rows)
		if err := state.Rows(i, func(key, row []byte) { rows[string(key)] = string(row) }); err != nil {
			return nil, err
		}
		d.Rows[s.ID] = rows
	}
	return d, nil
}

// CompareDisks replays the changelogs of the app, read_committed from their beginnings, and compares every
// disk with what they give up to its positions.
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
	f, err := newFollower(client, topics, func(rec *kgo.Record) {
		for _, r := range byLog[topicPartition{rec.Topic, rec.Partition}] {
			if rec.Offset < r.d.Ends[r.store] {
				r.log.Replay(rec.Key, rec.Value, rec.Timestamp.UnixMilli())
				if len(r.trail) < 200 {
					r.trail += fmt.Sprintf(" %d:%d", rec.Offset, rec.ProducerID)
				}
			} else {
				r.after[string(rec.Key)] = true
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
	for _, r := range all {
		for k := range r.after {
			if _, ok := r.log[k]; !ok {
				delete(r.d.Rows[r.store], k)
			}
		}
		out.Add(check.Compare(fmt.Sprintf("store %s of task %s on %s up to %d, offset:producer%s", r.store, r.d.Task, r.d.Owner, r.d.Ends[r.store], r.trail), r.log, r.d.Rows[r.store]))
	}
	return out, nil
}
