package mutant

// watermarks are the rules of how far event time has come, and of silent inputs.
func watermarks() []Mutant {
	return []Mutant{
		{Name: "watermark-max", What: "an operator takes the highest watermark of its inputs", Tests: units("watermark", "TestCombine"), Edits: []Edit{
			{combine, `least, top, group := int64(Finished), int64`, `least, top, group := int64(Unknown), int64`},
			{combine, `least = min(least, in.W)`, `least = max(least, in.W)`},
			{combine, `least = min(least, group)`, `least = max(least, group)`}}},
		{Name: "upstream-max", What: "an input takes the highest watermark of its upstream tasks", Tests: units("watermark", "TestWMNoPartition"), Edits: []Edit{
			{vector, `	least := int64(Finished)`, `	least := int64(Unknown)`},
			{vector, `least = min(least, r.w)`, `least = max(least, r.w)`}}},
		{Name: "unheard-left-out", What: "an upstream task that was never heard of is not waited for", Tests: units("watermark", "TestVector"), Edits: []Edit{
			{vector, "			case !r.heard:\n				v.idle = false\n				return\n", "			case !r.heard:\n"}}},
		{Name: "new-task-lowers", What: "an upstream task that joins takes the watermark back", Tests: units("watermark", "TestVector"), Edits: []Edit{
			{vector, `v.w = max(v.w, least)`, `v.w = least`}}},
		{Name: "old-writer-believed", What: "a control record of a writer that has lost the task counts", Tests: units("watermark", "TestVector"), Edits: []Edit{
			{vector, `generation < r.generation || generation == r.generation && e.Seq < r.seq {`, `generation < r.generation && false {`}}},
		{Name: "watermark-falls", What: "an input that comes back takes its operator's watermark back", Tests: units("watermark", "TestCombine"), Edits: []Edit{
			{combine, `return max(prev, least), false`, `return least, false`},
			{clocks, `if n.target > n.w || n.again {`, `if n.target != n.w || n.again {`}}},
		{Name: "all-idle-advances", What: "inputs that are all silent advance the watermark unasked", Tests: units("watermark", "TestWMAllIdle"), Edits: []Edit{
			{combine, `case all == AdvanceToMax:`, `case all != AdvanceWithClock:`}}},
		{Name: "clock-without-delay", What: "a watermark that goes with the clock forgets the out-of-orderness", Tests: units("watermark", "TestFStall"), Edits: []Edit{
			{combine, `below(now, delay)`, `below(now, 0)`}}},
		{Name: "idle-paused", What: "a paused partition counts as silent", Tests: units("watermark", "TestIdleness"), Edits: []Edit{
			{idleness, `i.after < 0 || i.paused || i.buffered`, `i.after < 0 || i.buffered`}}},
		{Name: "idle-buffered", What: "a partition with records waiting counts as silent", Tests: units("watermark", "TestIdleness"), Edits: []Edit{
			{idleness, `i.after < 0 || i.paused || i.buffered`, `i.after < 0 || i.paused`}}},
		{Name: "idle-unproven", What: "a probe without an answer counts as a proof of silence", Tests: units("watermark", "TestIdleness"), Edits: []Edit{
			{idleness, `	case !proof:`, `	case !proof && !i.proven:`}}},
		{Name: "idle-open-transaction", What: "a partition behind an open transaction counts as read to its end", Tests: units("internal/engine", "TestOpenTransactionIsNotIdle"), Edits: []Edit{
			{"internal/engine/idle.go", `q.at >= b.LastStable && b.LastStable == b.HighWatermark`, `q.at >= b.LastStable`}}},
		{Name: "idle-unreachable", What: "a broker that does not answer, or with an error, proves silence", Tests: units("internal/engine", "TestProbeErrorIsNotIdle"), Edits: []Edit{
			{"internal/engine/idle.go", `proof := ok && `, `proof := !ok || `}}},
		{Name: "idle-restored", What: "silence of before a restart is believed without a proof", Tests: units("topology", "TestSilenceIsProvenAnew"), Edits: []Edit{
			{clocked, `				k.wasIdle = idle`, `				k.wasIdle, k.mark.Idle = idle, idle`}}},
		{Name: "hold-ignored", What: "a processor's hold does not keep its watermark", Tests: units("topology", "TestHoldWatermark"), Edits: []Edit{
			{clocks, `if n.hold != nil && *n.hold <= w {`, `if n.hold != nil && *n.hold <= w && false {`}}},
		{Name: "hold-not-saved", What: "a processor's hold is not part of a commit", Tests: units("topology", "TestHoldWatermark"), Edits: []Edit{
			{custom, `	if o.node.hold == nil {`, `	if o.node.hold == nil || o.hold < noHold {`}}},
		{Name: "watermark-not-restored", What: "operators begin without a watermark after a restart and fire again", Tests: history("late/L-LATENESS-FIRST"), Edits: []Edit{
			{clocked, `			n.w, n.target = w, w`, `			_ = w`}}},
		{Name: "generator-not-restored", What: "generators begin anew after a restart", Tests: history("late/L-ORIGIN-RESTART"), Edits: []Edit{
			{clocked, "		if err := k.gen.Restore(state); err != nil {\n			return err\n		}\n", ""}}},
		{Name: "vector-not-saved", What: "what upstream tasks have said is not part of a commit", Tests: history("watermarks/WM-READER-DOWN"), Edits: []Edit{
			{clocked, `			buf = k.vec.Append(buf[:0])`, `			buf = watermark.NewVector(k.Writers...).Append(buf[:0])`},
			{clocked, "	\"github.com/tidemark/tidemark/internal/wire\"\n", "	\"github.com/tidemark/tidemark/internal/wire\"\n	\"github.com/tidemark/tidemark/watermark\"\n"}}},
		{Name: "vector-not-restored", What: "what upstream tasks have said is not read again after a restart", Tests: history("watermarks/WM-READER-DOWN"), Edits: []Edit{
			{clocked, `	if err := k.vec.Restore(state); err != nil {`, `	if err := k.vec.Restore(nil); err != nil && state == nil {`}}},
		{Name: "future-counts", What: "a record that is too far ahead moves the watermark", Tests: history("late/L-FUTURE-ONE"), Edits: []Edit{
			{"processor/source.go", "		c.unobserved = true\n		return false, c.refuse(s.Op, Late{Reason: Future", "		return false, c.refuse(s.Op, Late{Reason: Future"}}},
	}
}

// announcements are the rules of what comes before what: data before the control records that cover it, the upper
// operator before the lower one, what a watermark makes due before the next record.
func announcements() []Mutant {
	return []Mutant{
		{Name: "waiting-told", What: "an instance tells a partition that waits as one that others have to wait for", Tests: units("internal/engine", "TestAlignmentCostsEqualInstancesNothing"), Edits: []Edit{
			{"internal/engine/elsewhere.go", `return w.moving }`, `return w.lows }`}}},
		{Name: "control-first", What: "control records come before the data of a flush that they cover", Tests: units("internal/engine", "TestControlRecordsComeLast"), Edits: []Edit{
			{commit, "	output := w.uncommitted\n", "	output := w.uncommitted\n	if len(t.told) > 0 {\n		one := &flight{tasks: []flightTask{ft}}\n		w.announce(one, nowMs)\n		ft = one.tasks[0]\n	}\n"}}},
		{Name: "control-memory-kept", What: "what was announced in a transaction that is aborted counts as announced", Tests: units("internal/engine", "TestBroadcastForgetsAborts"), Edits: []Edit{
			{"internal/engine/broadcast.go", `		ft.told = append([]watermark.Broadcast(nil), t.told...)`, `		ft.told = t.told`}}},
		{Name: "control-no-refresh", What: "control records are not repeated for readers that know nothing", Tests: units("watermark", "TestBroadcast"), Edits: []Edit{
			{"watermark/broadcast.go", `age < 0 || age >= refresh || age >= interval`, `age < 0 || age >= refresh && false || age >= interval`}}},
		{Name: "lower-operator-first", What: "an operator moves before the panes of the one above it have reached it", Tests: history("watermarks/WM-CHAINED"), Edits: []Edit{
			{clocks, "	for _, n := range t.nodes {\n		n.target, n.idle = n.reach(t.now)\n", "	for i := range t.nodes {\n		n := t.nodes[len(t.nodes)-1-i]\n		n.target, n.idle = n.reach(t.now)\n"}}},
		{Name: "fires-after-record", What: "windows fire after the next record instead of before it", Tests: units("topology", "TestTumblingFiresOnTime"), Edits: []Edit{
			{"processor/task.go", "	moved     bool\n", "	moved     bool\n	behind    bool\n"},
			{"processor/task.go", "	c.rec, c.time, c.headers = r, r.Time, r.Headers\n", "	c.rec, c.time, c.headers = r, r.Time, r.Headers\n	t.moved, t.behind = t.moved || t.behind, false\n"},
			{"processor/task.go", "	if !c.unobserved && k.observe(c) {\n		t.moved = true\n", "	if !c.unobserved && k.observe(c) {\n		t.behind = true\n"}}},
	}
}
