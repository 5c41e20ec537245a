package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// BuildError is one reason why a topology cannot be built. Build returns all of them, joined.
type BuildError struct {
	Operator string // the operator's id, or kind and number; for a topic "source(<topic>)" or "sink(<topic>)"
	Reason   string
	Err      error // the cause, if there is one beyond the reason
}

// Error implements error.
func (e *BuildError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("topology: %s: %s: %v", e.Operator, e.Reason, e.Err)
	}
	return fmt.Sprintf("topology: %s: %s", e.Operator, e.Reason)
}

// Unwrap returns the cause.
func (e *BuildError) Unwrap() error { return e.Err }

// problems collects build errors with the position of their operator, so that they are reported in its order.
type problems []problem

type problem struct {
	seq int
	err *BuildError
}

func (p *problems) add(seq int, operator string, err error, format string, args ...any) {
	*p = append(*p, problem{seq, &BuildError{Operator: operator, Reason: fmt.Sprintf(format, args...), Err: err}})
}

func (p *problems) node(n *node, format string, args ...any) {
	p.add(n.seq, n.name(), nil, format, args...)
}

// join returns all problems as one error, nil if there is none.
func (p problems) join() error {
	sorted := slices.Clone(p)
	slices.SortStableFunc(sorted, func(a, b problem) int {
		if a.seq != b.seq {
			return a.seq - b.seq
		}
		return strings.Compare(a.err.Error(), b.err.Error())
	})
	var errs []error
	for i, s := range sorted {
		if i == 0 || s.err.Error() != sorted[i-1].err.Error() {
			errs = append(errs, s.err)
		}
	}
	return errors.Join(errs...)
}
