package mutant

// lates are the rules of who is late, and what becomes of it.
func lates() []Mutant {
	return []Mutant{
		{Name: "lateness-from-start", What: "the allowed lateness counts from the start of the window", Tests: units("window", "TestRefuses"), Edits: []Edit{
			{lateness, `return add(b.Last(), c.lateness)`, `return add(b.Start, c.lateness)`}}},
		{Name: "lateness-one-more", What: "a window takes records for 1 ms longer than allowed", Tests: units("window", "TestRefuses"), Edits: []Edit{
			{lateness, `w >= c.Cleanup(b)`, `w > c.Cleanup(b)`}}},
		{Name: "complete-at-end", What: "a window is complete at its end instead of its last ms", Tests: units("window", "TestRefuses"), Edits: []Edit{
			{lateness, `w >= b.Last()`, `w >= b.End`}}},
		{Name: "lateness-wraps", What: "end plus lateness wraps around near the end of time", Tests: units("window", "TestEnds"), Edits: []Edit{
			{"window/bounds.go", "	if d >= 0 && s < a {\n		return maxTime\n", "	if d >= 0 && s < a {\n		return s\n"}}},
		{Name: "late-lost", What: "a refused record is dropped without the late topic", Tests: history("late/L-EXPIRED-TWICE"), Edits: []Edit{
			{"processor/late.go", `	if err := c.out.Late(&l); err != nil {`, `	if err := error(nil); err != nil {`}}},
		{Name: "late-uncounted", What: "a refused record is not counted", Tests: units("topology", "TestDedupHorizon"), Edits: []Edit{
			{"processor/late.go", "	c.counters[op].Late[l.Reason]++\n", ""}}},
		{Name: "late-per-window", What: "a record goes to the late topic once for every window that refuses it", Tests: units("topology", "TestConservation"), Edits: []Edit{
			{windowed, "			n.LateWindows++\n			continue\n", "			n.LateWindows++\n			if err := c.refuse(o.Op, lateFor(o.Window, b, why, w)); err != nil {\n				return false, err\n			}\n			continue\n"}}},
		{Name: "folded-per-window", What: "a record counts as folded once for every window", Tests: units("topology", "TestConservation"), Edits: []Edit{
			{windowed, "		folded = true\n", "		folded = true\n		n.Folded++\n"},
			{windowed, "	case folded:\n		n.Folded++\n", "	case folded:\n"}}},
		{Name: "late-outside", What: "late records are not part of the transaction", Tests: units("internal/engine", "TestConservation"), Edits: []Edit{
			{"internal/engine/late.go", "	w.emit(r)\n", "	w.e.admin.Produce(context.Background(), r, nil)\n"},
			{"internal/engine/late.go", "import (\n", "import (\n	\"context\"\n"}}},
		{Name: "counted-at-seal", What: "metrics count what may still be aborted", Tests: units("internal/engine", "TestConservation"), Edits: []Edit{
			{commit, `ft.tally = t.tally()`, `w.e.cfg.Metrics.count(t.proc.Operators(), t.tally())`}}},
		{Name: "origin-ignored", What: "lateness by origin is judged by the operator", Tests: history("late/L-ORIGIN"), Edits: []Edit{
			{windowed, `	if o.Window.ByOrigin() {`, `	if o.Window.ByOrigin() && false {`}}},
	}
}

// windows are the rules of which windows a record belongs to.
func windows() []Mutant {
	return []Mutant{
		{Name: "hopping-oldest", What: "a record is left out of the oldest of its hopping windows", Tests: units("window", "TestAssign"), Edits: []Edit{
			{"window/assign.go", "	d += (w.size - d - 1) / w.hop * w.hop\n", "	if d += (w.size - d - 1) / w.hop * w.hop; d >= w.hop {\n		d -= w.hop\n	}\n"}}},
		{Name: "modulo-truncates", What: "times before 1970 are rounded towards it", Tests: units("window", "TestAssign"), Edits: []Edit{
			{"window/bounds.go", "	if r < 0 {\n		r += n\n	}\n", ""}}},
		{Name: "days-truncate", What: "calendar days before 1970 are rounded towards it", Tests: units("window", "TestCalendar"), Edits: []Edit{
			{"window/bounds.go", "	if a%n < 0 {\n		q--\n	}\n", ""}}},
		{Name: "day-of-24-hours", What: "a calendar day has 24 hours when clocks change as well", Tests: history("boundaries/W-CAL-DAY"), Edits: []Edit{
			{"window/calendar.go", "	return Bounds{millisOf(start), millisOf(end)}\n", "	if c.kind == KindDay {\n		end = start + secondsPerDay\n	}\n	return Bounds{millisOf(start), millisOf(end)}\n"}}},
	}
}

// firings are the rules of panes: when they come, and with what in them.
func firings() []Mutant {
	return []Mutant{
		{Name: "purged-before-firing", What: "a window without lateness is dropped before its on-time pane", Tests: units("topology", "TestTumblingFiresOnTime"), Edits: []Edit{
			{windowed, "	skip := o.pending\n", "	skip := o.pending\n	o.view.Expire(o.Window.ForgottenEnd(w))\n"}}},
		{Name: "early-after-on-time", What: "the early trigger goes on after the on-time pane", Tests: history("panes/F-INDEX"), Edits: []Edit{
			{"window/add.go", "		t, timing, arm = &c.late, TimingLate, ArmLate\n", ""}}},
		{Name: "deadline-after-end", What: "an early deadline fires after the end of its window", Tests: units("window", "TestTwin"), Edits: []Edit{
			{"window/deadline.go", `	case a == ArmEarly && !past:`, `	case a == ArmEarly:`}}},
		{Name: "deadline-not-cleared", What: "an early deadline fires though a count has fired and set another one", Tests: history("panes/F-EARLY-DEADLINE-MOVED"), Edits: []Edit{
			{deadlines, `	if !row.Present || cell.At != 0 && cell.At != at {`, `	if !row.Present {`}}},
		{Name: "deadlines-not-found", What: "windows that wait for a deadline are forgotten in a restart", Tests: history("panes/F-TRIGGER-RESTORED"), Edits: []Edit{
			{windowed, "		o.rearm = true\n", ""}}},
		{Name: "index-not-stored", What: "panes are numbered from 0 again after a restart", Tests: history("panes/F-DISCARDING-RESTART"), Edits: []Edit{
			{"window/state.go", `	if s.Panes != 0 || s.NonSpeculative != 0 {`, `	if s.Panes > 1<<31 {`}}},
		{Name: "discarding-keeps", What: "in discarding mode a pane shows what an earlier one has shown", Tests: history("panes/F-DISCARDING"), Edits: []Edit{
			{panes, "	case window.ModeDiscarding:\n		var zero A\n		v.Acc = zero\n	case window.ModeRetracting:\n		f.retract", "	case window.ModeRetracting:\n		f.retract"}}},
		{Name: "discarding-keeps-on-time", What: "in discarding mode a late pane shows what the on-time pane has shown", Tests: history("panes/F-DISCARDING-AFTER-ONTIME"), Edits: []Edit{
			{panes, "		var zero A\n		v.Acc = zero\n		return nil\n", "		return nil\n"}}},
		{Name: "changes-suppressed", What: "a pane with another value than the last one is suppressed", Tests: history("panes/F-EARLY-EACH"), Edits: []Edit{
			{"window/fire.go", `s.Flags&Emitted != 0 && s.Hash == hash {`, `s.Flags&Emitted != 0 {`}}},
		{Name: "on-time-hash-lost", What: "a late pane with the value of the on-time pane is not suppressed", Tests: history("late/L-SAME-VALUE"), Edits: []Edit{
			{panes, "	v.State.Hash = h\n	return err\n", "	_ = h\n	return err\n"}}},
		{Name: "retract-new", What: "the new value is retracted instead of the old one", Tests: history("retraction/R-LATE"), Edits: []Edit{
			{panes, `		f.retract, f.last = d.Retract, v.Last`, `		f.retract, f.last = d.Retract, v.Acc`}}},
		{Name: "retract-before-on-time", What: "what the on-time pane has shown is not what is retracted", Tests: history("retraction/R-LATE"), Edits: []Edit{
			{panes, "	case window.ModeRetracting:\n		v.Last = v.Acc\n	}\n	h, err", "	}\n	h, err"}}},
		{Name: "undo-adds", What: "a retraction is folded as a value", Tests: history("retraction/R-CHAINED"), Edits: []Edit{
			{windowed, `	if c.change == window.OpRetract && o.Undo != nil {`, `	if c.change == window.OpRetract && o.Undo != nil && false {`}}},
		{Name: "retraction-unmarked", What: "a repartition forgets what is a retraction", Tests: history("retraction/R-TWO-STAGE"), Edits: []Edit{
			{"processor/source.go", "			c.change = takeOp(c)\n", "			takeOp(c)\n"}}},
		{Name: "firing-repeated", What: "a firing that a commit has interrupted begins anew after a restart", Tests: history("shapes/MANY-KEYS"), Edits: []Edit{
			{windowed, "func (o *windowed[K, V, A]) cursor(dst []byte) []byte {\n	if !o.pending {\n", "func (o *windowed[K, V, A]) cursor(dst []byte) []byte {\n	if !o.pending || o.pending {\n"}}},
		{Name: "slices-fired-again", What: "a firing of slices that a commit has interrupted begins anew after a restart", Tests: history("boundaries/W-HOP"), Edits: []Edit{
			{sliced, "func (o *sliced[K, V, A]) cursor(dst []byte) []byte {\n	if !o.pending {\n", "func (o *sliced[K, V, A]) cursor(dst []byte) []byte {\n	if !o.pending || o.pending {\n"}}},
		{Name: "slices-late-folded", What: "a record that is late for all its sliced windows is folded", Tests: history("late/L-HOP-ALL-LATE"), Edits: []Edit{
			{sliced, `	if !open {`, `	if !open && false {`}}},
		{Name: "slices-late-wide", What: "a record that is late for one of its sliced windows is refused by all", Tests: history("late/L-HOP-PARTLY-LATE"), Edits: []Edit{
			{sliced, `	if !open {`, `	if !open || cover.Complete(w) > 0 {`}}},
	}
}

// sessions are the rules of windows that merge.
func sessions() []Mutant {
	return []Mutant{
		{Name: "sessions-touch", What: "sessions that are exactly the gap apart are one", Tests: history("sessions/S-GAP-EXACT"), Edits: []Edit{
			{"store/session.go", `if s.Start < span.End && span.Start < s.End {`, `if s.Start <= span.End && span.Start <= s.End {`}}},
		{Name: "session-orphan-row", What: "the row of an absorbed session stays", Tests: history("sessions/S-BRIDGE"), Edits: []Edit{
			{session, `		for _, s := range o.spans[1:] {`, `		for _, s := range o.spans[:0] {`}}},
		{Name: "session-orphan-pane", What: "the pane of an absorbed session stays downstream", Tests: history("sessions/S-EARLY-REKEY"), Edits: []Edit{
			{session, `		if a.Emitted && o.Window.Mode != window.ModeDiscarding {`, `		if a.Emitted && false {`}}},
		{Name: "session-retract-unshown", What: "of an absorbed session a value is retracted that was never shown", Tests: history("sessions/S-BRIDGE-UNSHOWN"), Edits: []Edit{
			{session, `row.Time, old.Last})`, `row.Time, old.Acc})`}}},
		{Name: "session-forgotten-early", What: "a closed session is not remembered for another gap", Tests: history("sessions/S-OVERLAP-ZERO-L"), Edits: []Edit{
			{lateness, `return add(c.Cleanup(b), c.Window.Gap())`, `return c.Cleanup(b)`},
			{lateness, `return endUpTo(w, add(c.lateness, c.Window.Gap()))`, `return endUpTo(w, c.lateness)`}}},
		{Name: "session-count-lost", What: "a merged session counts its records for the trigger anew", Tests: history("sessions/S-COUNT-MERGED"), Edits: []Edit{
			{"window/merge.go", "	into.Count += from.Count\n", ""}}},
		{Name: "session-index-lost", What: "the panes of a merged session are numbered anew", Tests: history("sessions/S-BRIDGE"), Edits: []Edit{
			{"window/merge.go", "	into.Panes = max(into.Panes, from.Panes)\n", ""}}},
	}
}
