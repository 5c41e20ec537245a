// Package invariants switches assertions on: in builds with the tag `invariants` and in every
// build with the race detector. In other builds Enabled is a false constant, so a block under
// `if invariants.Enabled` costs nothing.
//
// An assertion states what the code guarantees by itself. It must never judge input, answers of a
// broker or the state of a disk: those are errors in every build. The package holds no state.
package invariants

import "fmt"

// Check panics with the formatted message when ok is false and Enabled is true. Its arguments are
// evaluated in every build; put costly ones under `if invariants.Enabled`.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
