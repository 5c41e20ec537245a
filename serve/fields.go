package serve

import (
	"bytes"
	"encoding/json/jsontext"
	"strings"

	"github.com/tidemark/tidemark/query"
)

// maxFields and maxDepth bound a projection.
const (
	maxFields = 100
	maxDepth  = 32
)

// fields is a tree of the parts of a value to keep. A nil tree keeps everything.
type fields struct{ of map[string]*fields }

// parseFields reads dotted paths.
func parseFields(paths []string, raw bool) (*fields, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	if raw {
		return nil, query.Errorf(query.InvalidRequest, "fields are parts of JSON: not together with raw")
	}
	if len(paths) > maxFields {
		return nil, query.Errorf(query.InvalidRequest, "more than %d fields", maxFields)
	}
	root := &fields{map[string]*fields{}}
	for _, path := range paths {
		names := strings.Split(path, ".")
		if len(names) > maxDepth {
			return nil, query.Errorf(query.InvalidRequest, "field %.40q has more than %d names", path, maxDepth)
		}
		at := root
		for i, name := range names {
			if name == "" {
				return nil, query.Errorf(query.InvalidRequest, "field %.40q has an empty name", path)
			}
			next, ok := at.of[name]
			if ok && next == nil {
				break // all of it is kept already
			}
			if i == len(names)-1 {
				at.of[name] = nil
			} else if !ok {
				next = &fields{map[string]*fields{}}
				at.of[name] = next
			}
			at = next
		}
	}
	return root, nil
}

// project returns the parts of a JSON value. Arrays are projected element by element; what has no such part is left out,
// and a value that is no object stays as it is.
func (f *fields) project(value []byte) ([]byte, error) {
	if f == nil {
		return value, nil
	}
	var out bytes.Buffer
	d := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	e := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true))
	if err := f.copy(e, d); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func (f *fields) copy(e *jsontext.Encoder, d *jsontext.Decoder) error {
	kind := d.PeekKind()
	if f == nil || kind != '{' && kind != '[' {
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		return e.WriteValue(v)
	}
	if err := move(e, d); err != nil {
		return err
	}
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		next := f
		if kind == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return err
			}
			text := name.String()
			sub, keep := f.of[text]
			if !keep || sub != nil && d.PeekKind() != '{' && d.PeekKind() != '[' {
				if err := d.SkipValue(); err != nil {
					return err
				}
				continue
			}
			if err := e.WriteToken(jsontext.String(text)); err != nil {
				return err
			}
			next = sub
		}
		if err := next.copy(e, d); err != nil {
			return err
		}
	}
	return move(e, d)
}

// move copies one token.
func move(e *jsontext.Encoder, d *jsontext.Decoder) error {
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	return e.WriteToken(t)
}
