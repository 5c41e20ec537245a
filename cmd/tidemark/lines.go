package main

import (
	"encoding/base64"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"io"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// lines prints one JSON object per line, with the names of the API.
type lines struct{ e *jsontext.Encoder }

func newLines(w io.Writer) *lines {
	return &lines{jsontext.NewEncoder(w, jsontext.AllowDuplicateNames(true))}
}

// print prints a line. The encoder ends it.
func (l *lines) print(v any) error { return json.MarshalEncode(l.e, v) }

func (l *lines) flush() error { return nil }

// rowLine is a row as JSON.
type rowLine struct {
	Key       jsontext.Value `json:"key,omitzero"`
	Value     jsontext.Value `json:"value,omitzero"`
	Start     *int64         `json:"start,omitzero"`
	End       *int64         `json:"end,omitzero"`
	Index     *int64         `json:"index,omitzero"`
	Time      *int64         `json:"time,omitzero"`
	Deleted   bool           `json:"deleted,omitzero"`
	Partition *int32         `json:"partition,omitzero"`
	Meta      *metaLine      `json:"meta,omitzero"`
}

// metaLine is what was read, as JSON.
type metaLine struct {
	Task      string `json:"task"`
	Seq       uint64 `json:"seq"`
	Watermark *int64 `json:"watermark,omitzero"`
	Time      *int64 `json:"time,omitzero"`
	Age       *int64 `json:"age,omitzero"`
	Position  string `json:"position,omitempty"`
	Stale     bool   `json:"stale,omitzero"`
	Lag       int64  `json:"lag,omitzero"`
}

// goneLine stands for a key without a row.
type goneLine struct {
	Asked     string    `json:"asked"`
	Found     bool      `json:"found"`
	Missing   bool      `json:"missing,omitzero"`
	Partition *int32    `json:"partition,omitzero"`
	Meta      *metaLine `json:"meta,omitzero"`
}

// eventLine is an event of a watch as JSON.
type eventLine struct {
	Partition *int32    `json:"partition,omitzero"`
	Rows      []rowLine `json:"rows,omitempty"`
	Meta      *metaLine `json:"meta,omitzero"`
	Reset     bool      `json:"reset,omitzero"`
	More      bool      `json:"more,omitzero"`
	Complete  bool      `json:"complete,omitzero"`
	Token     string    `json:"token,omitempty"`
}

// datum is a key or value as JSON, nil if there is none.
func datum(d *apiv1.Datum) (jsontext.Value, error) {
	switch f := d.GetForm().(type) {
	case *apiv1.Datum_Json:
		return jsontext.Value(f.Json), nil
	case *apiv1.Datum_Raw:
		return jsontext.AppendQuote(nil, base64.StdEncoding.EncodeToString(f.Raw))
	}
	return nil, nil
}

func lineOf(r *apiv1.Row, m *apiv1.Meta) (l rowLine, err error) {
	l = rowLine{Start: r.Start, End: r.End, Index: r.Index, Time: r.Time, Deleted: r.Deleted, Partition: r.Partition, Meta: metaLineOf(m)}
	if l.Key, err = datum(r.Key); err == nil {
		l.Value, err = datum(r.Value)
	}
	return l, err
}

func metaLineOf(m *apiv1.Meta) *metaLine {
	if m == nil {
		return nil
	}
	return &metaLine{m.Task, m.GetSeq(), m.Watermark, m.Time, m.Age, m.Position, m.Stale, m.Lag}
}

func (l *lines) row(r *apiv1.Row, m *apiv1.Meta) error {
	line, err := lineOf(r, m)
	if err != nil {
		return err
	}
	return l.print(line)
}

func (l *lines) found(asked string, f *apiv1.Found, m *apiv1.Meta) error {
	if f.Row != nil {
		return l.row(f.Row, m)
	}
	return l.print(goneLine{asked, false, f.Missing, f.Partition, metaLineOf(m)})
}

func (l *lines) event(e *apiv1.WatchEvent) error {
	line := eventLine{Partition: e.Partition, Meta: metaLineOf(e.Meta), Reset: e.Reset_, More: e.More, Complete: e.Complete, Token: e.Token}
	for _, r := range e.Rows {
		row, err := lineOf(r, nil)
		if err != nil {
			return err
		}
		line.Rows = append(line.Rows, row)
	}
	return l.print(line)
}
