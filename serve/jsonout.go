package serve

import (
	"encoding/base64"
	"encoding/json/jsontext"
	"io"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// JSON of answers. Protobuf's own has 64-bit integers as strings and cannot embed the JSON of a store: google.protobuf.Value
// holds numbers as float64, so that a counter beyond 2^53 would lose digits, and a string of JSON would have to be parsed
// once more by whoever reads it. Here a Datum is its JSON, and numbers are numbers.

// appendJSON appends the JSON of a message.
func appendJSON(w io.Writer, m proto.Message) error {
	e := jsontext.NewEncoder(w, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return writeMessage(e, m.ProtoReflect())
}

func writeMessage(e *jsontext.Encoder, m protoreflect.Message) error {
	switch v := m.Interface().(type) {
	case *apiv1.Datum:
		if raw, ok := v.Form.(*apiv1.Datum_Raw); ok {
			return e.WriteToken(jsontext.String(base64.StdEncoding.EncodeToString(raw.Raw)))
		}
		return e.WriteValue(jsontext.Value(v.GetJson()))
	case *durationpb.Duration:
		return e.WriteToken(jsontext.String(v.AsDuration().String()))
	case *anypb.Any:
		inner, err := v.UnmarshalNew()
		if err != nil {
			return err
		}
		return writeFields(e, inner.ProtoReflect(), v.TypeUrl)
	}
	return writeFields(e, m, "")
}

// writeFields writes the fields that are there, in the order of their numbers.
func writeFields(e *jsontext.Encoder, m protoreflect.Message, kind string) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	if kind != "" {
		if err := writeName(e, "@type", jsontext.String(kind)); err != nil {
			return err
		}
	}
	list := m.Descriptor().Fields()
	for i := range list.Len() {
		f := list.Get(i)
		if !m.Has(f) {
			continue
		}
		if err := e.WriteToken(jsontext.String(string(f.Name()))); err != nil {
			return err
		}
		if err := writeField(e, f, m.Get(f)); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

func writeName(e *jsontext.Encoder, name string, v jsontext.Token) error {
	if err := e.WriteToken(jsontext.String(name)); err != nil {
		return err
	}
	return e.WriteToken(v)
}

func writeField(e *jsontext.Encoder, f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.IsMap():
		if err := e.WriteToken(jsontext.BeginObject); err != nil {
			return err
		}
		var err error
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			if err = e.WriteToken(jsontext.String(k.String())); err == nil {
				err = writeValue(e, f.MapValue(), v)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
		return e.WriteToken(jsontext.EndObject)
	case f.IsList():
		if err := e.WriteToken(jsontext.BeginArray); err != nil {
			return err
		}
		for i := range v.List().Len() {
			if err := writeValue(e, f, v.List().Get(i)); err != nil {
				return err
			}
		}
		return e.WriteToken(jsontext.EndArray)
	}
	return writeValue(e, f, v)
}

func writeValue(e *jsontext.Encoder, f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return writeMessage(e, v.Message())
	case protoreflect.BoolKind:
		return e.WriteToken(jsontext.Bool(v.Bool()))
	case protoreflect.StringKind:
		return e.WriteToken(jsontext.String(v.String()))
	case protoreflect.BytesKind:
		return e.WriteToken(jsontext.String(base64.StdEncoding.EncodeToString(v.Bytes())))
	case protoreflect.EnumKind:
		if d := f.Enum().Values().ByNumber(v.Enum()); d != nil {
			return e.WriteToken(jsontext.String(string(d.Name())))
		}
		return e.WriteToken(jsontext.Int(int64(v.Enum())))
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return e.WriteToken(jsontext.Uint(v.Uint()))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return e.WriteToken(jsontext.Float(v.Float()))
	}
	return e.WriteToken(jsontext.Int(v.Int()))
}
