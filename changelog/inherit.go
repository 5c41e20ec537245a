package changelog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SubTopology is what the control topic records of a sub-topology, and what a
// topology asks an id for.
type SubTopology struct {
	ID        string   // the id in topic names and task names
	Operators []string // ids of its repartitions (read side) and stores, sorted
	Topics    []string // its source topics, sorted; repartition topics excluded
}

// MergeError reports a sub-topology that holds what used to be several.
type MergeError struct {
	ID     string   // the id the topology computed
	Former []string // the ids it would have to inherit
}

func (e *MergeError) Error() string {
	return fmt.Sprintf("changelog: sub-topology %q joins the former sub-topologies %s into one, whose tasks and state are apart; take a savepoint with the old topology and restore it into a new generation",
		e.ID, quoted(e.Former))
}

// SplitError reports a former sub-topology whose operators are now spread over several.
type SplitError struct {
	Former string   // the recorded id
	Into   []string // the ids the topology computed
}

func (e *SplitError) Error() string {
	return fmt.Sprintf("changelog: former sub-topology %q is split into %s, whose tasks cannot share its state; take a savepoint with the old topology and restore it into a new generation",
		e.Former, quoted(e.Into))
}

// TakenError reports a new sub-topology whose computed id another one has inherited.
type TakenError struct {
	ID        string   // the id
	Operators []string // operators of the sub-topology that holds it
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("changelog: sub-topology id %q is already that of the sub-topology with %s; rename the operator %q",
		e.ID, quoted(e.Operators), e.ID)
}

// Inherit gives every sub-topology of a topology the id under which its state is
// kept: the recorded id that holds any of its operators; without one, the recorded
// id that reads any of its source topics (a stateless part that became stateful, or
// the other way round); else its own. The result has the order and the length of
// want and differs from it only in ID. Errors are *MergeError, *SplitError and
// *TakenError, all at once through errors.Join.
func Inherit(recorded, want []SubTopology) ([]SubTopology, error) {
	out := slices.Clone(want)
	var errs []error
	heirs := make(map[string][]int) // recorded id → indexes into want
	fresh := make([]bool, len(want))
	for i, w := range want {
		former := holders(recorded, w.Operators, func(s SubTopology) []string { return s.Operators })
		if len(former) == 0 {
			former = holders(recorded, w.Topics, func(s SubTopology) []string { return s.Topics })
		}
		switch len(former) {
		case 0:
			fresh[i] = true
		case 1:
			out[i].ID = former[0]
			heirs[former[0]] = append(heirs[former[0]], i)
		default:
			errs = append(errs, &MergeError{w.ID, former})
			for _, f := range former {
				heirs[f] = append(heirs[f], i)
			}
		}
	}
	for _, r := range recorded {
		if list := heirs[r.ID]; len(list) > 1 {
			var into []string
			for _, i := range list {
				into = append(into, want[i].ID)
			}
			slices.Sort(into)
			errs = append(errs, &SplitError{r.ID, into})
		}
	}
	for i, w := range want {
		if !fresh[i] {
			continue
		}
		// A retired sub-topology keeps its id too: its topics are still there.
		if at := slices.IndexFunc(recorded, func(s SubTopology) bool { return s.ID == w.ID }); at >= 0 {
			errs = append(errs, &TakenError{w.ID, recorded[at].Operators})
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// holders returns the ids of the recorded sub-topologies that share a name with names, sorted.
func holders(recorded []SubTopology, names []string, of func(SubTopology) []string) []string {
	var ids []string
	for _, r := range recorded {
		for _, name := range of(r) {
			if slices.Contains(names, name) {
				ids = append(ids, r.ID)
				break
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func quoted(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", n)
	}
	return b.String()
}
