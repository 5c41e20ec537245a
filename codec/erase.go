package codec

import (
	"encoding/base64"
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Erased is a codec whose type is not known where it is used: it turns what people write into bytes and back.
type Erased struct {
	schema string
	what   string
	json   func(dst, b []byte) ([]byte, error)
	parse  func(dst, text []byte) ([]byte, error)
	kind   reflect.Kind // of values that need no quotes: String, or Slice for bytes; else Invalid
}

// Erase returns the codec without its type.
func Erase[T any](c Codec[T]) Erased {
	t := reflect.TypeFor[T]()
	e := Erased{schema: c.Schema(), what: t.String(), json: c.JSON}
	e.parse = func(dst, text []byte) ([]byte, error) {
		v, err := fromJSON[T](text)
		if err != nil {
			return nil, err
		}
		if n, ok := any(c).(Nullable[T]); ok && n.IsNull(v) {
			return nil, nullError(e.schema)
		}
		return c.Append(dst, v)
	}
	switch {
	case e.schema == "string":
		e.kind = reflect.String
	case e.schema == "bytes":
		e.kind = reflect.Slice
	}
	return e
}

// fromJSON reads a value as codecs show it.
func fromJSON[T any](text []byte) (v T, err error) {
	if isProto(reflect.TypeFor[T]()) {
		m := any(v).(proto.Message).ProtoReflect().New().Interface()
		err = protojson.Unmarshal(text, m)
		return any(m).(T), err
	}
	err = json.Unmarshal(text, &v, jsonv1.FormatDurationAsNano(true), json.RejectUnknownMembers(true))
	return v, err
}

// Schema is that of the codec.
func (e Erased) Schema() string { return e.schema }

// JSON appends a JSON view of encoded bytes.
func (e Erased) JSON(dst, b []byte) ([]byte, error) { return e.json(dst, b) }

// Parse appends the encoding of a JSON value, written as JSON shows it. The error wraps ErrMalformed and names the type.
func (e Erased) Parse(dst, text []byte) ([]byte, error) {
	out, err := e.parse(dst, text)
	if err != nil {
		return nil, e.malformed(text, err)
	}
	return out, nil
}

// ParseText appends the encoding of text as people write it where quotes are in the way: a string as it is, bytes in
// base64, everything else as JSON, whose outer quotes may be missing. The error wraps ErrMalformed and names the type.
func (e Erased) ParseText(dst []byte, text string) ([]byte, error) {
	switch e.kind {
	case reflect.String:
		return append(dst, text...), nil
	case reflect.Slice:
		enc := base64.StdEncoding
		if strings.ContainsAny(text, "-_") {
			enc = base64.URLEncoding
		}
		out, err := enc.WithPadding(base64.NoPadding).AppendDecode(dst, []byte(strings.TrimRight(text, "=")))
		if err != nil {
			return nil, e.malformed([]byte(text), err)
		}
		return out, nil
	}
	out, err := e.parse(dst, []byte(text))
	if err != nil {
		// A time, for instance, is a string in JSON.
		if quoted, qerr := jsontext.AppendQuote(nil, text); qerr == nil {
			if out, qerr := e.parse(dst, quoted); qerr == nil {
				return out, nil
			}
		}
		return nil, e.malformed([]byte(text), err)
	}
	return out, nil
}

func (e Erased) malformed(text []byte, err error) error {
	return fmt.Errorf("codec: %w: %.80q is not a %s (schema %s): %w", ErrMalformed, text, e.what, e.schema, err)
}
