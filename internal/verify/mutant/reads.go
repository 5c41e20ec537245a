package mutant

// Reads returns the mutants of what readers see of a task's state.
func Reads() []Mutant {
	engine := func(run string) []Test { return units("internal/engine", run) }
	return []Mutant{
		{Name: "overlay-read", What: "readers see what no transaction has committed", Tests: engine("TestQueryShowsCommits"), Edits: []Edit{
			{"internal/engine/commit.go", "	for _, in := range t.inputs {\n		ft.positions", "	t.expose(p.W, p.Time)\n	for _, in := range t.inputs {\n		ft.positions"},
			{"store/reading.go", "	s.finder.drop(s.persisted)\n	return &Reading{", "	s.finder.drop(s.persisted)\n	if g := s.sealed; g != nil {\n		gs := gens{base: s.committedGens.base, list: append([]*gen(nil), s.committedGens.list...)}\n		gs.push(g)\n		return &Reading{Seq: seq, db: s.db, gate: s.gate, index: newIndex(s.seed), ahead: &s.ahead, seed: s.seed, specs: s.specs, numbers: s.numbers, floors: s.floors, gens: gs, persisted: s.persisted, committed: g.no}\n	}\n	return &Reading{"}}},
		{Name: "no-outdated", What: "a reading takes what the database has later than it", Tests: units("store", "TestReadingTwin"), Edits: []Edit{
			{"store/reading.go", "return r.ahead.Load() > r.committed", "return false"}}},
		{Name: "cut-block", What: "a block that lacks generations serves readings whose database lacks them too", Tests: units("store", "TestReadingTwin"), Edits: []Edit{
			{"store/readindex.go", "b == nil || b.from > max(first, persisted+1)", "b == nil"}}},
		{Name: "oldest-first", What: "a block finds the oldest row of a key", Tests: units("store", "TestReadingTwin"), Edits: []Edit{
			{"store/readindex.go", "for n, g := range b.gens {\n		for i", "for back := range b.gens {\n		n := len(b.gens) - 1 - back\n		g := b.gens[n]\n		for i"},
			{"store/readindex.go", "if n > 0 && b.search", "if back > 0 && b.search"}}},
		{Name: "no-floor", What: "readers see rows of windows that have expired", Tests: units("store", "TestReadingTwin"), Edits: []Edit{
			{"store/reading.go", "	if bytes.Compare(key, r.floors[store]) < 0 {\n		return dst, false, nil\n	}\n	hash", "	hash"}}},
		{Name: "open-gate", What: "iterators outlive the database", Tests: units("store", "TestReadingBesideTheWorker"), Edits: []Edit{
			{"store/state.go", "errors.Join(err, s.gate.close(), s.db.Close())", "errors.Join(err, s.db.Close())"}}},
		{Name: "lost-answers", What: "a view answers after its task has moved", Tests: engine("TestQueryAfterMove"), Edits: []Edit{
			{"internal/engine/queries.go", "		if t.lease.lost() {\n			return &query.Error{Reason: query.Moved", "		if false {\n			return &query.Error{Reason: query.Moved"}}},
		{Name: "early-answer", What: "a question does not wait for its position", Tests: engine("TestQPosition"), Edits: []Edit{
			{"internal/engine/queries.go", "!ok || at < q.Number", "!ok"}}},
		{Name: "any-commit", What: "a question does not wait for the commit of an earlier answer", Tests: engine("TestQueryMoves"), Edits: []Edit{
			{"internal/engine/queries.go", "n > p.meta.Seq", "false && n > p.meta.Seq"}}},
		{Name: "stale-for-all", What: "a task that restores answers everybody", Tests: engine("TestQueryWhileRestoring"), Edits: []Edit{
			{"internal/engine/queries.go", "p == nil || p.stale != nil && w.Consistency != query.Stale", "p == nil"}}},
		{Name: "resume-from-now", What: "a watch that comes back hears only what is new", Tests: engine("TestWatchResumes"), Edits: []Edit{
			{"internal/engine/watcher.go", "p.rows.Since(w.spec.From,", "p.rows.Since(p.meta.Seq,"}}},
		{Name: "since-part", What: "changes that have left memory are passed over", Tests: units("store", "TestReadingTwin"), Edits: []Edit{
			{"store/reading.go", "	if from < 0 {\n		return false\n	}", "	if from < 0 {\n		from = 0\n	}"}}},
		{Name: "page-goes-back", What: "what was told before a page counts after it", Tests: engine("TestWatchResumes"), Edits: []Edit{
			{"internal/engine/watcher.go", "x.seq <= v.Seq && string(k)", "false && string(k)"}}},
		{Name: "silent-overflow", What: "a watcher loses what is too much for it", Tests: engine("TestWatchResumes"), Edits: []Edit{
			{"internal/engine/watcher.go", "	w.lost, w.rows, w.bytes = true, ", "	w.lost, w.rows, w.bytes = false, "}}},
		{Name: "empty-key-end", What: "a page that ends at an empty key is the last", Tests: units("query", "TestPagesTwin"), Edits: []Edit{
			{"query/page.go", "p.next = append([]byte{}, key...)", "p.next = append(p.next[:0], key...)"}}},
		{Name: "older-version", What: "a page of versions shows replaced ones", Tests: units("query", "TestPagesTwin"), Edits: []Edit{
			{"query/page.go", "valid = valid && !taken && r.Start <= p.To", "valid = valid && r.Start <= p.To"}}},
		{Name: "half-windows", What: "windows are read whose slices have gone", Tests: units("query", "TestSlicedTwin"), Edits: []Edit{
			{"query/sliced.go", "from = max(from, s.Sliced.Done(v.Watermark))", "_ = s.Sliced.Done"}}},
	}
}
