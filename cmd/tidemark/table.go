package main

import (
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// table prints aligned columns. Columns keep the width of what was printed before, so that the parts of a long table line up
// as far as they can. The last column is not padded.
type table struct {
	w      io.Writer
	widths []int
	held   [][]string
}

func newTable(w io.Writer, columns ...string) *table {
	t := &table{w: w, widths: make([]int, len(columns))}
	t.line(columns...)
	return t
}

// line holds a line back until flush.
func (t *table) line(cells ...string) {
	for i, c := range cells {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c))
	}
	t.held = append(t.held, cells)
}

func (t *table) flush() error {
	var b strings.Builder
	for _, cells := range t.held {
		var line strings.Builder
		for i, c := range cells {
			line.WriteString(c)
			if i < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(c)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	t.held = t.held[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

// rowTable prints rows of a store.
type rowTable struct {
	*table
	kind query.Kind
	meta bool
}

func newRowTable(w io.Writer, kind query.Kind, meta bool) *rowTable {
	columns := append([]string{"PARTITION"}, rowColumns(kind)...)
	if meta {
		columns = append([]string{"PARTITION", "COMMIT", "WATERMARK", "AGE"}, rowColumns(kind)...)
	}
	return &rowTable{newTable(w, columns...), kind, meta}
}

// rowColumns are the columns of the rows of a store.
func rowColumns(kind query.Kind) []string {
	switch kind {
	case query.Window, query.Session:
		return []string{"KEY", "START", "END", "TIME", "VALUE"}
	case query.Versioned:
		return []string{"KEY", "SINCE", "VALUE"}
	case query.List:
		return []string{"KEY", "INDEX", "TIME", "VALUE"}
	}
	return []string{"KEY", "TIME", "VALUE"}
}

// rowCells are the cells of a row.
func rowCells(kind query.Kind, r *apiv1.Row) []string {
	key, value := cell(r.Key), cell(r.Value)
	if r.Value == nil {
		value = "-"
	}
	switch kind {
	case query.Window, query.Session:
		return []string{key, moment(r.Start), moment(r.End), moment(r.Time), value}
	case query.Versioned:
		return []string{key, moment(r.Start), value}
	case query.List:
		return []string{key, number(r.Index), moment(r.Time), value}
	}
	return []string{key, moment(r.Time), value}
}

// cell is a key or value in a table: a string without quotes, where it is one that can be printed.
func cell(d *apiv1.Datum) string {
	switch f := d.GetForm().(type) {
	case *apiv1.Datum_Raw:
		return base64.StdEncoding.EncodeToString(f.Raw)
	case *apiv1.Datum_Json:
		var s string
		if json.Unmarshal([]byte(f.Json), &s) == nil && s != "" && strings.TrimSpace(s) == s && printable(s) {
			return s
		}
		return f.Json
	}
	return ""
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// metaCells are the cells of what a row was read from.
func metaCells(p *int32, m *apiv1.Meta) []string {
	if m == nil {
		return []string{number(p), "", "", ""}
	}
	age := ""
	if m.Age != nil {
		age = (time.Duration(*m.Age) * time.Millisecond).String()
	}
	if m.Stale {
		age += fmt.Sprintf(" (stale, %d records behind)", m.Lag)
	}
	return []string{number(p), number(m.Seq), moment(m.Watermark), age}
}

func (t *rowTable) row(r *apiv1.Row, m *apiv1.Meta) error {
	t.add(r.Partition, m, rowCells(t.kind, r))
	return nil
}

func (t *rowTable) add(p *int32, m *apiv1.Meta, cells []string) {
	if !t.meta {
		t.line(append([]string{number(p)}, cells...)...)
		return
	}
	t.line(append(metaCells(p, m), cells...)...)
}

func (t *rowTable) found(asked string, f *apiv1.Found, m *apiv1.Meta) error {
	r := f.Row
	if r != nil {
		return t.row(r, m)
	}
	cells := rowCells(t.kind, &apiv1.Row{})
	cells[0], cells[len(cells)-1] = asked, "(none)"
	if f.Missing {
		cells[len(cells)-1] = "(no answer)"
	}
	t.add(f.Partition, m, cells)
	return nil
}

// eventTable prints events of a watch.
type eventTable struct {
	*table
	kind query.Kind
	// telling are the partitions whose rows are being told.
	telling map[int32]bool
}

func newEventTable(w io.Writer, kind query.Kind) *eventTable {
	return &eventTable{newTable(w, append([]string{"PARTITION", "COMMIT", "CHANGE"}, rowColumns(kind)...)...), kind, map[int32]bool{}}
}

func (t *eventTable) event(e *apiv1.WatchEvent) error {
	p := e.GetPartition()
	commit := ""
	if e.Meta != nil {
		commit = number(e.Meta.Seq)
	}
	line := func(change string, cells []string) {
		t.line(append([]string{number(e.Partition), commit, change}, cells...)...)
	}
	if e.Reset_ {
		t.telling[p] = true
		line("reset", nil)
	}
	for _, r := range e.Rows {
		change := "set"
		switch {
		case r.Deleted:
			change = "delete"
		case t.telling[p]:
			change = "row"
		}
		line(change, rowCells(t.kind, r))
	}
	if !e.More {
		delete(t.telling, p)
	}
	return t.flush()
}
