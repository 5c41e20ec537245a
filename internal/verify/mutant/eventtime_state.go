package mutant

// forgetful are the rules of what an abort takes back and a restore brings again.
func forgetful() []Mutant {
	return []Mutant{
		{Name: "combined-kept", What: "what was combined before a repartition is kept after an abort", Tests: units("topology", "TestPreAggregateAbort"), Edits: []Edit{
			{partial, "	return o.add, o.flush\n", "	if old, ok := kept.LoadOrStore(c.out, o.rows); ok {\n		o.rows = old.(map[string]*partial[A])\n	}\n	return o.add, o.flush\n"},
			{partial, "// partial is one partial aggregate.\n", "var kept sync.Map\n\n// partial is one partial aggregate.\n"},
			{partial, "	\"slices\"\n", "	\"slices\"\n	\"sync\"\n"}}},
		{Name: "combined-windows", What: "records of different windows are combined before a repartition", Tests: units("topology", "TestPreAggregateWindows"), Edits: []Edit{
			{partial, "	case o.Window == nil:\n", "	case o.Window == nil || ts > 0:\n"}}},
		{Name: "timer-queue-kept", What: "the queue of timers is not rolled back", Tests: units("topology", "TestTimersAgainstATwin"), Edits: []Edit{
			{states, "	for _, q := range s.queues {\n		q.reset()\n	}\n", ""}}},
		{Name: "timer-row-kept", What: "a timer that has fired stays set", Tests: units("store", "TestTimerOnce"), Edits: []Edit{
			{"store/timers.go", "		if set {\n			v.v.Remove(r, 0)\n		}\n", ""}}},
		{Name: "timers-not-restored", What: "timers are not found again after a restore", Tests: units("topology", "TestProcessingTimersAfterARestart"), Edits: []Edit{
			{bulk, `		if d < 0 || b.specs[i].Kind == Session {`, `		if d < 0 || b.specs[i].Kind == Session || b.specs[i].Kind == Timers {`}}},
		{Name: "ttl-not-restored", What: "rows do not expire after a restore", Tests: units("topology", "TestDTTLSameFlush"), Edits: []Edit{
			{bulk, `		if d < 0 || b.specs[i].Kind == Session {`, `		if d < 0 || b.specs[i].Kind == Session || b.specs[i].Kind == Expiring {`}}},
		{Name: "floor-kept", What: "windows that were dropped stay so after an abort", Tests: units("topology", "TestWindowsAgainstATwin"), Edits: []Edit{
			{states, "	s.floors = s.committedFloors\n	for i, v", "	for i, v"}}},
		{Name: "floor-not-read", What: "windows that were dropped are back after a restart", Tests: units("store", "TestRetentionRead"), Edits: []Edit{
			{states, `	s.committedFloors, s.persistedFloors = s.floors, s.floors`, `	s.floors = make([][]byte, len(s.specs))
	s.committedFloors, s.persistedFloors = s.floors, s.floors`}}},
		{Name: "restored-below-floor", What: "windows that a changelog brings back are not dropped again", Tests: units("topology", "TestRestoreDropsExpired"), Edits: []Edit{
			{windowed, `	if o.Node.w != math.MinInt64 {`, `	if o.Node.w != math.MinInt64 && false {`}}},
	}
}

// retention are the rules of how long something is remembered.
func retention() []Mutant {
	return []Mutant{
		{Name: "dedup-dropped-early", What: "ids are dropped a bucket too early", Tests: units("topology", "TestDedupAgainstATwin"), Edits: []Edit{
			{dedup, `	if b := o.bucket(satAdd(w, -o.keep)); b > o.floor {`, `	if b := o.bucket(satAdd(w, -o.keep)) + 1; b > o.floor {`}}},
		{Name: "dedup-one-horizon", What: "ids that match at any time are kept for one horizon instead of two", Tests: units("topology", "TestDedupAgainstATwin"), Edits: []Edit{
			{dedup, `		o.keep = satAdd(cfg.Horizon, cfg.Horizon)`, `		o.keep = cfg.Horizon`}}},
		{Name: "dedup-by-clock", What: "the horizon of a deduplication is judged by the clock", Tests: units("topology", "TestDedupHorizon"), Edits: []Edit{
			{dedup, `o.bucket(c.time) < o.bucket(satAdd(w, -o.Horizon))`, `o.bucket(c.time) < o.bucket(satAdd(c.Now(), -o.Horizon))`}}},
		{Name: "dedup-backwards", What: "an id that passed with a later time is not a duplicate", Tests: units("topology", "TestDedupRenewal"), Edits: []Edit{
			{dedup, `if ok && t <= satAdd(c.time, o.Horizon) && c.time <= satAdd(t, o.Horizon) {`, `if ok && t <= c.time && c.time <= satAdd(t, o.Horizon) {`}}},
		{Name: "dedup-top-lost", What: "ids of before a restart are not looked for", Tests: units("topology", "TestDedupAgainstATwin"), Edits: []Edit{
			{dedup, `return binary.BigEndian.AppendUint32(dst, o.top)`, `return binary.BigEndian.AppendUint32(dst, 0)`}}},
		{Name: "dedup-truncates", What: "buckets of times before 1970 are rounded towards it", Tests: units("topology", "TestDedupHorizon"), Edits: []Edit{
			{dedup, "	if t%o.Width < 0 {\n		q--\n	}\n", ""}}},
		{Name: "trim-first-grows", What: "what expires next is joined with what expires later", Tests: units("changelog", "TestTrimManyGroups"), Edits: []Edit{
			{"changelog/trims.go", `	for i := 2; i < len(t.Segments); i++ {
		if d := uint64(t.Segments[i].Group) - uint64(t.Segments[i-2].Group); d < least {`, `	for i := 1; i < len(t.Segments); i++ {
		if d := uint64(t.Segments[i].Group) - uint64(t.Segments[i-1].Group); d < least {`}}},
		{Name: "ttl-shortened", What: "an older record shortens what a newer one has given a row", Tests: units("topology", "TestTTLAgainstATwin"), Edits: []Edit{
			{"processor/ttl.go", `		until = max(until, had)`, `		_ = had`}}},
		{Name: "ttl-by-record", What: "rows are judged by the record's time where the watermark is ahead", Tests: units("topology", "TestTTLAgainstATwin"), Edits: []Edit{
			{"processor/ttl.go", `	return max(r.c.time, r.l.Node.w)`, `	return r.c.time`}}},
	}
}
