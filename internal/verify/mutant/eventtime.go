package mutant

import "slices"

// The files of event time that several mutants change.
const (
	combine   = "watermark/combine.go"
	vector    = "watermark/vector.go"
	idleness  = "watermark/idleness.go"
	clocks    = "processor/clocks.go"
	clocked   = "processor/clockstate.go"
	lateness  = "window/lateness.go"
	windowed  = "processor/windowed.go"
	sliced    = "processor/sliced.go"
	panes     = "processor/pane.go"
	session   = "processor/session.go"
	deadlines = "processor/deadline.go"
	partial   = "processor/partial.go"
	dedup     = "processor/dedup.go"
	custom    = "processor/customtime.go"
	states    = "store/state.go"
	bulk      = "store/bulk.go"
)

// EventTime returns the mutants of event time. Each names ordinary tests, all of which must fail.
func EventTime() []Mutant {
	return slices.Concat(watermarks(), announcements(), lates(), windows(), firings(), sessions(), forgetful(), retention())
}

// units are tests of one package.
func units(pkg, run string) []Test { return []Test{{Package: "./" + pkg, Run: "^(" + run + ")$"}} }

// history is a text history.
func history(name string) []Test {
	return []Test{{Package: "./tidemarktest", Run: "^TestHistories$/^" + name + "$"}}
}
