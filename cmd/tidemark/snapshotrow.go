package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json/jsontext"
	"unicode/utf8"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

// storedLine is a row of a database as JSON.
type storedLine struct {
	Store    string         `json:"store"`
	Number   uint16         `json:"number"`
	Kind     string         `json:"kind"`
	Key      jsontext.Value `json:"key,omitzero"`
	RawKey   jsontext.Value `json:"raw_key,omitzero"`
	Tag      jsontext.Value `json:"tag,omitzero"` // of a timer, in base64
	Start    *int64         `json:"start,omitzero"`
	End      *int64         `json:"end,omitzero"`
	Index    *uint64        `json:"index,omitzero"`
	Value    jsontext.Value `json:"value,omitzero"`
	RawValue jsontext.Value `json:"raw_value,omitzero"`
	Deleted  bool           `json:"deleted,omitzero"` // a version that says that there is no value from then on
	Until    *int64         `json:"until,omitzero"`
	Time     *int64         `json:"time,omitzero"` // of the last write
}

// storedRow is a line with the key as the app encodes it.
type storedRow struct {
	storedLine
	key []byte
}

// storedRows reads the rows of one store without the app's types.
type storedRows struct {
	s          store.Stored
	panes      bool
	key, value format
}

// format shows bytes of a schema; its view is nil if the schema does not say how.
type format struct {
	schema string
	view   func(dst, b []byte) ([]byte, error)
}

func formatOf(schema string) format {
	f := format{schema: schema}
	if view, ok := codec.ViewOf(schema); ok {
		f.view = view
	}
	return f
}

// show returns bytes as JSON, or in base64 as raw.
func (f format) show(b []byte) (text, raw jsontext.Value) {
	if f.view != nil && (f.schema != "string" || utf8.Valid(b)) {
		if text, err := f.view(nil, b); err == nil {
			return text, nil
		}
	}
	return nil, base64Of(b)
}

func base64Of(b []byte) jsontext.Value {
	return append(base64.StdEncoding.AppendEncode([]byte{'"'}, b), '"')
}

func newStoredRows(s store.Stored) *storedRows {
	schema, panes := topology.StoredValue(s.Spec)
	return &storedRows{s, panes, formatOf(s.Spec.KeySchema), formatOf(schema)}
}

// row takes a row apart, key and value as Stored.Scan has them. One that is not in the layout of its store is shown as bytes;
// ok is false for one that only serves others.
func (r *storedRows) row(key, value []byte) (out storedRow, ok bool) {
	whole := storedLine{Store: r.s.Spec.ID, Number: r.s.Number, Kind: r.s.Spec.Kind.String()}
	out.storedLine = whole
	if len(value) >= 8 {
		t := int64(binary.BigEndian.Uint64(value))
		out.Time = &t
		switch out.apart(r, key, value[8:]) {
		case apart:
			return out, true
		case serves:
			return out, false
		}
	}
	whole.RawKey, whole.RawValue = base64Of(key), base64Of(value)
	return storedRow{whole, key}, true
}

// What became of an attempt to take a row apart.
const (
	malformed = iota
	apart
	serves
)

func (o *storedRow) apart(r *storedRows, key, value []byte) int {
	o.key = key
	ok := true
	switch r.s.Spec.Kind {
	case store.KeyValue:
	case store.Expiring:
		if value, ok = o.until(value); !ok {
			return malformed
		}
	case store.Window:
		var end int64
		end, o.key, ok = store.ParseWindowKey(key)
		o.End = &end
	case store.Session:
		var span store.Span
		o.key, span, ok = store.ParseSessionKey(key)
		o.Start, o.End = &span.Start, &span.End
	case store.Versioned:
		var from int64
		o.key, from, ok = store.ParseVersionKey(key)
		o.Start = &from
		value, o.Deleted = store.VersionValue(value)
	case store.List:
		var index uint64
		if o.key, index, ok = store.ParseListKey(key); !ok {
			return serves // first and last index of a list
		}
		o.Index, value = &index, store.ListValue(value)
	case store.Timers:
		var tag []byte
		o.key, tag, ok = store.ParseTermKey(key)
		o.Tag, o.Time = base64Of(tag), nil
		rest, is := o.until(value)
		if !ok || !is || len(rest) > 0 {
			return malformed
		}
		o.Key, o.RawKey = r.key.show(o.key)
		return apart
	default: // hashes that stand for keys
		o.RawKey = base64Of(key)
		if len(value) > 0 {
			o.RawValue = base64Of(value)
		}
		return apart
	}
	if !ok {
		return malformed
	}
	if r.panes {
		if value, ok = store.PaneValue(value); !ok {
			return malformed
		}
	}
	o.Key, o.RawKey = r.key.show(o.key)
	if !o.Deleted {
		o.Value, o.RawValue = r.value.show(value)
	}
	return apart
}

// until takes a time off a value.
func (o *storedRow) until(b []byte) (rest []byte, ok bool) {
	if len(b) < 8 {
		return nil, false
	}
	t := int64(binary.BigEndian.Uint64(b))
	o.Until = &t
	return b[8:], true
}
