package engine

import (
	"math"
	"slices"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/store"
)

// Windows and the ids of a deduplication expire without a tombstone, so their changelogs are cut off at the front: up to
// the first offset that may hold a row that has not expired. A task remembers per commit the highest window it has written
// (changelog.Trim), and the progress record holds that beside the floors of the stores. It says two things to whoever
// restores: what lies below is of no use, so that reading begins above it wherever the log begins; and a log that begins
// above it has lost rows.

// noGroup is the highest group of a commit that has written no row.
const noGroup = math.MinInt64

// trimmed says whether the changelog of a store is cut off at the front.
func (s *sub) trimmed(cl int) bool { return s.Stores[s.changelogs[cl].store].Kind.Trimmed() }

// wantChangelog returns what is expected of a changelog.
func (s *sub) wantChangelog(cl int) changelog.Want {
	name := s.changelogs[cl].name
	switch s.Stores[s.changelogs[cl].store].Kind {
	case store.Window:
		return changelog.WantWindowChangelog(name, s.tasks)
	case store.Dedup:
		return changelog.WantDedupChangelog(name, s.tasks)
	}
	return changelog.WantChangelog(name, s.tasks)
}

// nextTrims returns the trims as of the commit that is being sealed, by changelog; high is the highest group it writes to
// each.
func (t *task) nextTrims(high []int64) []changelog.Trim {
	out := make([]changelog.Trim, len(t.sub.changelogs))
	copy(out, t.trims)
	for cl, c := range t.sub.changelogs {
		if !t.sub.trimmed(cl) {
			continue
		}
		spec := &t.sub.Stores[c.store]
		trim := out[cl]
		trim.Store = spec.ID
		if high[cl] != noGroup {
			trim = trim.Add(t.ends[cl], high[cl])
		}
		if floor := t.state.Floor(c.store); len(floor) > 0 {
			trim = trim.Expire(spec.Kind.Group(floor), floor)
		}
		out[cl] = trim
	}
	return out
}

// setTrims puts trims into a progress record.
func (s *sub) setTrims(p *changelog.Progress, trims []changelog.Trim) {
	var list []changelog.Trim
	for cl := range trims {
		if s.trimmed(cl) {
			list = append(list, trims[cl])
		}
	}
	if len(list) > 0 {
		p.SetSection(changelog.SectionTrims, changelog.AppendTrims(nil, list))
	}
}

// trimsOf returns the trims of a progress record, by changelog.
func (s *sub) trimsOf(p *changelog.Progress) ([]changelog.Trim, error) {
	out := make([]changelog.Trim, len(s.changelogs))
	list, err := changelog.ParseTrims(p.Section(changelog.SectionTrims))
	if err != nil {
		return nil, err
	}
	for cl, c := range s.changelogs {
		i := slices.IndexFunc(list, func(t changelog.Trim) bool { return t.Store == s.Stores[c.store].ID })
		if i >= 0 && s.trimmed(cl) {
			out[cl] = list[i]
		}
	}
	return out, nil
}

// begin is from where on a restore has to read a changelog.
type begin struct {
	at   int64
	lost bool // the log begins above what is needed: only a local state that is newer helps
}

// begins compares where the changelogs begin with what the last commit needs of them.
func (e *Engine) begins(t *task, s *sight) ([]begin, error) {
	trims, err := t.sub.trimsOf(s.progress)
	if err != nil {
		return nil, err
	}
	t.trims = trims
	out := make([]begin, len(t.sub.changelogs))
	for cl, c := range t.sub.changelogs {
		b := s.bounds[changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition}]
		needed := trims[cl].Needed()
		// Below needed, an instance that has not heard yet that it lost the task may still be cutting off.
		out[cl].at = max(b.Start, needed)
		if e.startMoves {
			continue
		}
		if out[cl].lost = b.Start > needed; !t.sub.trimmed(cl) {
			out[cl].lost = b.Start > 0 && b.Start < b.HighWatermark
		}
	}
	return out, nil
}
