package snapshot

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Log is what is known of the changelog partition of a store.
type Log struct {
	Store string
	// Start is the first offset of the log, HighWatermark the end of what is replicated, LastStable the end of what has been
	// committed.
	Start, HighWatermark, LastStable int64
	// Trimmed says that the log begins where it does because what lay below has expired. What a compacted log lacks
	// at its start is lost.
	Trimmed bool
}

// Facts are what a manifest is judged by: the task as it is now.
type Facts struct {
	Task Task
	// Seq is that of the progress record that was committed last.
	Seq uint64
	// Now is the wall clock, in ms.
	Now int64
	// Retention is how long deletes stay in a compacted log: delete.retention.ms.
	Retention time.Duration
	// Markers is how far the end of a log lies behind its last record when nothing came after it: 1 with transactions, else 0.
	Markers int64
	// Format is the newest format of a database that this build opens.
	Format int
	// Fingerprint is that of the topology's state. Empty: any will do, stores are judged one by one.
	Fingerprint string
	// Stores are those the task declares. One the manifest lacks is restored from its changelog, one it has beyond them is dropped.
	// One whose rows can be read in several forms is there once for each, the present one first.
	Stores []Store
	// TopicIDs are the ids of the topics as they are now.
	TopicIDs map[string][16]byte
	// Logs are the changelogs of the declared stores.
	Logs []Log
}

// Judge returns why a task must not be restored from a snapshot, or "" if it may be. Whether its files are whole shows when
// they are read.
func Judge(m *Manifest, f Facts) (reason string) {
	for _, rule := range []func(*Manifest, Facts) string{
		judgeTask, judgeFormat, judgeStores, judgeTopics, judgeSeq, judgePositions,
	} {
		if reason := rule(m, f); reason != "" {
			return reason
		}
	}
	return ""
}

func judgeTask(m *Manifest, f Facts) string {
	if m.Task() != f.Task {
		return fmt.Sprintf("it is of the task %v", m.Task())
	}
	if f.Fingerprint != "" && m.Fingerprint != f.Fingerprint {
		return fmt.Sprintf("it is of the topology %s, this is %s", m.Fingerprint, f.Fingerprint)
	}
	return ""
}

func judgeFormat(m *Manifest, f Facts) string {
	if m.Format > f.Format {
		return fmt.Sprintf("its database has format %d, this build opens up to %d", m.Format, f.Format)
	}
	return ""
}

func judgeStores(m *Manifest, f Facts) string {
	for _, have := range m.Stores {
		at := slices.IndexFunc(f.Stores, func(s Store) bool { return s.ID == have.ID })
		if at >= 0 && !slices.Contains(f.Stores, have) {
			want := f.Stores[at]
			return fmt.Sprintf("its store %s is %s %q to %q, declared as %s %q to %q", have.ID,
				have.Kind, have.KeySchema, have.ValueSchema, want.Kind, want.KeySchema, want.ValueSchema)
		}
	}
	return ""
}

func judgeTopics(m *Manifest, f Facts) string {
	for _, topic := range slices.Sorted(maps.Keys(m.TopicIDs)) {
		have := m.TopicIDs[topic]
		if now, ok := f.TopicIDs[topic]; ok && now != have {
			return fmt.Sprintf("topic %s has been made anew: id was %s, is %s", topic, hex.EncodeToString(have[:]), hex.EncodeToString(now[:]))
		}
	}
	return ""
}

func judgeSeq(m *Manifest, f Facts) string {
	if m.Seq > f.Seq {
		return fmt.Sprintf("it is of commit %d, the last one is %d", m.Seq, f.Seq)
	}
	return ""
}

// judgePositions looks at the logs of the stores that the database holds.
func judgePositions(m *Manifest, f Facts) string {
	age := f.Now - m.Time
	for _, l := range f.Logs {
		if !slices.ContainsFunc(m.Stores, func(s Store) bool { return s.ID == l.Store }) {
			continue // replayed from the start of its log
		}
		end, ok := m.End(l.Store)
		switch {
		case !ok:
			return fmt.Sprintf("it has rows of %s and no position in its changelog", l.Store)
		case end > l.HighWatermark:
			return fmt.Sprintf("its position %d is beyond the end %d of the changelog of %s", end, l.HighWatermark, l.Store)
		case end < l.Start && !l.Trimmed:
			return fmt.Sprintf("its position %d is below the start %d of the changelog of %s", end, l.Start, l.Store)
		case age > f.Retention.Milliseconds()/2 && end+f.Markers < l.LastStable:
			return fmt.Sprintf("it is %d h old, deletes may be gone from the changelog of %s", age/time.Hour.Milliseconds(), l.Store)
		}
	}
	return ""
}
