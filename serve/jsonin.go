package serve

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// marshaler is the JSON of the REST front, see appendJSON. In bodies a Datum is the JSON value itself, and where a string is
// expected, as a key in its text form or a time, other JSON stands for its own text.
type marshaler struct{}

func (marshaler) ContentType(any) string { return "application/json" }

// Marshal returns one line, with its end.
func (marshaler) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		b, err := json.Marshal(v)
		return append(b, '\n'), err
	}
	var out bytes.Buffer
	err := appendJSON(&out, m)
	return out.Bytes(), err
}

func (k marshaler) Unmarshal(b []byte, v any) error {
	return k.NewDecoder(bytes.NewReader(b)).Decode(v)
}

func (k marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		b, err := k.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
}

func (k marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		m, ok := v.(proto.Message)
		if !ok {
			return fmt.Errorf("%T is no message", v)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(b)) == 0 {
			return nil
		}
		return decodeJSON(b, m)
	})
}

// decodeJSON reads a request.
func decodeJSON(b []byte, m proto.Message) error {
	var object map[string]jsontext.Value
	if err := json.Unmarshal(b, &object); err != nil {
		return fmt.Errorf("the body is no JSON object: %w", err)
	}
	list := m.ProtoReflect().Descriptor().Fields()
	for name, value := range object {
		f := list.ByName(protoreflect.Name(name))
		if f == nil {
			f = list.ByJSONName(name)
		}
		if f == nil {
			return fmt.Errorf("there is no field %.40q", name)
		}
		text, err := fieldText(f, value)
		if err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		object[name] = text
	}
	plain, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(plain, m)
}

// fieldText makes the JSON of a field what protobuf's own JSON takes.
func fieldText(f protoreflect.FieldDescriptor, value jsontext.Value) (jsontext.Value, error) {
	if f.IsList() && value.Kind() == '[' {
		var elements []jsontext.Value
		if err := json.Unmarshal(value, &elements); err != nil {
			return nil, err
		}
		for i := range elements {
			e, err := oneText(f, elements[i])
			if err != nil {
				return nil, err
			}
			elements[i] = e
		}
		return json.Marshal(elements)
	}
	if value.Kind() == 'n' {
		return value, nil
	}
	return oneText(f, value)
}

func oneText(f protoreflect.FieldDescriptor, value jsontext.Value) (jsontext.Value, error) {
	switch {
	case f.Kind() == protoreflect.MessageKind && f.Message().FullName() == (&apiv1.Datum{}).ProtoReflect().Descriptor().FullName():
		return json.Marshal(map[string]string{"json": string(value)})
	case f.Kind() == protoreflect.StringKind && value.Kind() != '"':
		return json.Marshal(string(value))
	case f.Kind() == protoreflect.EnumKind && value.Kind() == '"':
		return jsontext.Value(strings.ToUpper(string(value))), nil
	}
	return value, nil
}
