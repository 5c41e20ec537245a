package mutant

import "slices"

const (
	commit  = "internal/engine/commit.go"
	open    = "internal/engine/open.go"
	resolve = "internal/engine/resolve.go"
	source  = "internal/engine/source.go"
	restore = "internal/engine/restore.go"
	stable  = "changelog/stable.go"
)

// List returns all mutants.
func List() []Mutant {
	return slices.Concat(of("commit", Commit()), of("event-time", EventTime()), of("snapshots", Snapshots()), of("queries", slices.Concat(Reads(), Serving())))
}

// Commit returns the mutants of the commit protocol: every rule alone, and in pairs where one covers the other.
func Commit() []Mutant {
	return append(append(alone(), state()...), pairs()...)
}

// alone are the rules of the commit.
func alone() []Mutant {
	return []Mutant{
		{Name: "seq-only", What: "an unknown outcome is judged by seq without the writer", Scene: "unknown-zombie", Edits: []Edit{
			{resolve, "md.Seq != ft.seq || md.Writer != f.prod.writer", "md.Seq != ft.seq"}}},
		{Name: "lease-first", What: "the lease is checked before the metadata is read", Scene: "stale-lease", Edits: []Edit{
			{commit, "		e.cfg.CrashPoint(K4b)\n		if t := f.lost(member); t != nil {\n			return \"lease lost\", fmt.Errorf(\"task %s: %w\", t, errLeaseLost)\n		}\n",
				"		if t := f.lost(member); t != nil {\n			return \"lease lost\", fmt.Errorf(\"task %s: %w\", t, errLeaseLost)\n		}\n		e.cfg.CrashPoint(K4b)\n		member, generation, ok = e.source.metadata()\n"}}},
		{Name: "no-lease", What: "the lease is not checked", Scene: "stale-flush", Edits: []Edit{
			{commit, "		if t := f.lost(member); t != nil {\n			return \"lease lost\"", "		if t := f.lost(member); t != nil && false {\n			return \"lease lost\""}}},
		{Name: "any-member", What: "a lease holds for another member of the same instance", Scene: "rejoined", Edits: []Edit{
			{commit, "ft.task.lease.lost() || member != \"\" && ft.task.lease.member != member", "ft.task.lease.lost()"}}},
		{Name: "offsets-only", What: "the group's offsets alone say that a commit was not made", Scene: "stale-coordinator", Edits: []Edit{
			{resolve, "return e.recorded(ctx, f)", "return aborted, nil"}}},
		{Name: "empty-member", What: "offsets are sent for an empty member, which the broker does not check", Scene: "lost-callback", Edits: []Edit{
			{"internal/engine/offsets.go", "	req.MemberID, req.Generation = member, generation\n	if e.cfg.Static != \"\" {\n		req.InstanceID = kmsg.StringPtr(e.cfg.Static)\n	}\n	index := make(map[string]int)\n	for _, c := range commits {\n		i, ok := index[c.topic]\n		if !ok {\n			i = len(req.Topics)\n			index[c.topic] = i\n			t := kmsg.NewTxnOffsetCommitRequestTopic()",
				"	req.MemberID, req.Generation = \"\", -1\n	index := make(map[string]int)\n	for _, c := range commits {\n		i, ok := index[c.topic]\n		if !ok {\n			i = len(req.Topics)\n			index[c.topic] = i\n			t := kmsg.NewTxnOffsetCommitRequestTopic()"}}},
		{Name: "unknown-committed", What: "an unknown outcome counts as committed", Scene: "lost-request", Edits: []Edit{
			{resolve, "return landing{outcome: verdict, cause: \"unknown\", err: cause, prod: p}", "verdict = committed\n	return landing{outcome: verdict, cause: \"unknown\", err: cause, prod: p}"}}},
		{Name: "unknown-aborted", What: "an unknown outcome counts as aborted", Scene: "lost-answer", Edits: []Edit{
			{resolve, "return landing{outcome: verdict, cause: \"unknown\", err: cause, prod: p}", "verdict = aborted\n	return landing{outcome: verdict, cause: \"unknown\", err: cause, prod: p}"}}},
		{Name: "bound-aborted", What: "at the end of the bound an unknown outcome counts as aborted", Scene: "bound", Edits: []Edit{
			{resolve, "		verdict = noVerdict\n", "		verdict = aborted\n"}}},
		{Name: "apply-early", What: "the overlay is applied whatever becomes of the transaction", Scene: "aborted", Edits: []Edit{
			{commit, "	if l.outcome != committed {\n		w.log.Info(\"transaction \"+l.outcome.String()",
				"	if l.outcome != committed {\n		for _, ft := range f.tasks {\n			if ft.ends != nil {\n				w.apply(ft.task, ft, w.e.cfg.Clock.Now().UnixMilli())\n			}\n		}\n		w.log.Info(\"transaction \"+l.outcome.String()"}}},
		{Name: "apply-lost", What: "a task that lost its lease applies its overlay, whatever the outcome was", Scene: "lost-apply", Edits: []Edit{
			{resolve, "	if len(parts) == 0 {\n		return aborted, nil", "	if len(parts) == 0 {\n		return committed, nil"},
			{commit, "		if t.lease.lost() {\n			continue // the next owner", "		if t.lease.lost() && false {\n			continue // the next owner"}}},
		{Name: "keep-next", What: "generation g+1 is kept after g has failed", Scene: "pipelined", Edits: []Edit{
			{commit, "	w.pending = w.pending[:0]\n	w.uncommitted, w.sinceCommit = 0, 0\n	w.forced = false\n", "	w.uncommitted, w.sinceCommit = 0, 0\n	w.forced = false\n"}}},
		{Name: "produce-error", What: "a produce error does not abort", Scene: "refused-produce", Edits: []Edit{
			{commit, "	if r, err := f.prod.produceError(); err != nil {", "	if r, err := f.prod.produceError(); err != nil && false {"}}},
		{Name: "partial-offsets", What: "a refused partition of TxnOffsetCommit does not abort", Scene: "aborted", Edits: []Edit{
			{"internal/engine/offsets.go", "			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {\n				return fmt.Errorf(\"TxnOffsetCommit:", "			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil && false {\n				return fmt.Errorf(\"TxnOffsetCommit:"}}},
		{Name: "no-offset", What: "an offset is left out of the transaction", Scene: "handover", Edits: []Edit{
			{commit, "	member, generation, ok := e.source.metadata()\n", "	if len(commits) > 1 {\n		commits = commits[1:]\n	}\n	member, generation, ok := e.source.metadata()\n"}}},
		{Name: "no-progress", What: "the progress record is left out", Scene: "handover", Edits: []Edit{
			{commit, "	w.emit(&kgo.Record{Topic: t.sub.progress,", "	_ = (&kgo.Record{Topic: t.sub.progress,"}}},
		{Name: "not-rewound", What: "inputs are not rewound after an abort", Scene: "pipelined", Edits: []Edit{
			{commit, "			w.e.source.seek(in, in.committed, in.reset(in.committed))\n", "			_ = in\n"}}},
		{Name: "no-describe", What: "no look for open transactions after a re-initialisation", Scene: "lost-marker", Edits: []Edit{
			{resolve, "	if p.txnID == \"\" {\n		return nil\n	}\n	backoff", "	if p.txnID != \"-\" {\n		return nil\n	}\n	backoff"}}},
	}
}

// state are the rules of stores, restore and placement.
func state() []Mutant {
	return []Mutant{
		{Name: "dirty-views", What: "dirty views are kept after an abort", Scene: "aborted", Edits: []Edit{
			{"store/state.go", "			v.rollback(s.sealed)\n", "			v.rollback(nil)\n"},
			{"store/seal.go", "	for _, list := range [...][]uint32{v.sealed, v.dirty, v.dead} {", "	for _, list := range [...][]uint32{} {"}}},
		{Name: "count-records", What: "a restore ends by the number of records", Scene: "handover", Edits: []Edit{
			{restore, "		reached[i] = r.Offset + 1\n", "		reached[i] = r.Offset + 1\n		if info.Records > info.Total/2 {\n			return nil // every second offset is a marker, is it not?\n		}\n"}}},
		{Name: "purge-ahead", What: "repartition records are purged beyond the committed offset", Edits: []Edit{
			{"internal/engine/purge.go", "Partition: in.partition}] = in.committed", "Partition: in.partition}] = in.end.Load() + 1"}}},
		{Name: "read-uncommitted", What: "repartition records are read uncommitted", Scene: "aborted", Edits: []Edit{
			{source, "kgo.FetchIsolationLevel(kgo.ReadCommitted())", "kgo.FetchIsolationLevel(kgo.ReadUncommitted())"}}},
		{Name: "older-value", What: "the last-value map of a restore keeps the older value", Scene: "handover", Edits: []Edit{
			{"store/bulk.go", "	if e == nil {\n		p.index.insert", "	if e != nil {\n		return nil\n	}\n	if e == nil {\n		p.index.insert"}}},
		{Name: "plan-eager", What: "a partition is given to another member in the same round", Edits: []Edit{
			{"rebalance/plan.go", "switch b := p.block[i][n]; b {", "switch b := nobody; b {"}}},
		{Name: "local-ahead", What: "positions of the database are not written with its rows", Scene: "lost-request", Edits: []Edit{
			{commit, "End: ft.ends[i]})", "End: t.ends[i]})"}}},
		{Name: "fence-nobody", What: "an old incarnation is not initialised anew after an unclear outcome", Scene: "lost-answer", Edits: []Edit{
			{resolve, "	verdict, err := e.verdict(ctx, f)\n", "	verdict, err := aborted, error(nil)\n"}}},
	}
}

// noVerify takes verification away, which covers other rules.
func noVerify() []Edit {
	return []Edit{
		{open, "	if err := e.verifyOffsets(t, s); err != nil {", "	if err := e.verifyOffsets(t, s); err != nil && false {"},
		{open, "	if s.hasMeta && s.meta.Seq == p.Seq {", "	if s.hasMeta && s.meta.Seq == p.Seq && false {"},
	}
}

// pairs are rules of which one alone is covered by another.
func pairs() []Mutant {
	return []Mutant{
		{Name: "unstable-fetch+no-verify", What: "a take-over fetches offsets that are not stable, and nothing is verified", Scene: "hanging-takeover", Edits: append([]Edit{
			{stable, "fetchOffsets(ctx, cl, group, open)", "fetchOffsets(ctx, cl, group, open, wait > time.Second)"},
			{stable, "group string, parts []TopicPartition) (map[TopicPartition]kmsg", "group string, parts []TopicPartition, yes bool) (map[TopicPartition]kmsg"},
			{stable, "	req.RequireStable = true\n", "	req.RequireStable = yes\n"},
			// Positions from the progress record are a third line, which the model does not have.
			{open, "		off, ok := p.Offset(in.topic, in.partition)\n", "		off, ok := p.Offset(in.topic, in.partition)\n		if c := s.offsets[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}]; c.Found {\n			off = c.Offset\n		}\n"},
		}, noVerify()...)},
		{Name: "stable-bound+no-verify", What: "a restore ends at the last stable offset of its start, and nothing is verified", Scene: "hanging-takeover", Edits: append([]Edit{
			// "At the start" is before the stable fetch has waited for the former owner.
			{open, "	var err error\n	s.offsets, err = changelog.StableOffsets(", "	early := earlyStable(ctx, e, t)\n	var err error\n	s.offsets, err = changelog.StableOffsets("},
			{open, "	for i, tp := range inputs {\n		t.inputs[i].end", "	for tp, b := range s.bounds {\n		if o, ok := early[tp]; ok {\n			b.HighWatermark = o.LastStable\n			s.bounds[tp] = b\n		}\n	}\n	for i, tp := range inputs {\n		t.inputs[i].end"},
			{open, "// mismatch is a verification that failed.", "func earlyStable(ctx context.Context, e *Engine, t *task) map[changelog.TopicPartition]changelog.Bounds {\n	logs := []changelog.TopicPartition{{Topic: t.sub.progress, Partition: t.id.Partition}}\n	for _, c := range t.sub.changelogs {\n		logs = append(logs, changelog.TopicPartition{Topic: c.name, Partition: t.id.Partition})\n	}\n	b, _ := changelog.ListBounds(ctx, e.admin, logs)\n	return b\n}\n\n// mismatch is a verification that failed."},
		}, noVerify()...)},
		{Name: "early-target+no-verify", What: "a restore ends at a mark noted before the assignment, and nothing is verified", Edits: append([]Edit{
			{open, "	if s.bounds, err = changelog.ListBounds(ctx, e.admin, logs); err != nil {\n		return nil, err\n	}\n",
				"	if s.bounds, err = changelog.ListBounds(ctx, e.admin, logs); err != nil {\n		return nil, err\n	}\n	for tp, b := range s.bounds {\n		old, _ := earlyMarks.LoadOrStore(earlyMark{e, tp}, b.HighWatermark)\n		b.HighWatermark = old.(int64)\n		s.bounds[tp] = b\n	}\n"},
			{open, "// mismatch is a verification that failed.", "var earlyMarks sync.Map\n\ntype earlyMark struct {\n	e  *Engine\n	tp changelog.TopicPartition\n}\n\n// mismatch is a verification that failed."},
			{open, "	\"fmt\"\n", "	\"fmt\"\n	\"sync\"\n"},
		}, noVerify()...)},
	}
}
