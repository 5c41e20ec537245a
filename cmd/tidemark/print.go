package main

import (
	"io"
	"strconv"
	"time"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// printer prints rows.
type printer interface {
	// row prints a row, and what it was read from unless that is nil.
	row(r *apiv1.Row, m *apiv1.Meta) error
	// found prints what was found for a key.
	found(asked string, f *apiv1.Found, m *apiv1.Meta) error
	// flush prints what has been held back to align it.
	flush() error
}

// eventPrinter prints events of a watch.
type eventPrinter interface {
	event(e *apiv1.WatchEvent) error
}

// Whether a table has columns for what rows were read from.
const (
	plain    = false
	withMeta = true
)

func (a *asker) printer(w io.Writer, s *apiv1.Store, meta bool) printer {
	if a.output == asJSON {
		return newLines(w)
	}
	return newRowTable(w, query.Kind(s.Kind), meta)
}

func (a *asker) events(w io.Writer, s *apiv1.Store) eventPrinter {
	if a.output == asJSON {
		return newLines(w)
	}
	return newEventTable(w, query.Kind(s.Kind))
}

// moment is a time in ms for people, empty for nil.
func moment(ms *int64) string {
	if ms == nil {
		return ""
	}
	return time.UnixMilli(*ms).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

func number[T int32 | int64 | uint64](n *T) string {
	if n == nil {
		return ""
	}
	if *n < 0 {
		return strconv.FormatInt(int64(*n), 10)
	}
	return strconv.FormatUint(uint64(*n), 10)
}
