package codec

import (
	"regexp"
	"strings"
)

// envelopeSchema is that of a Versioned codec.
var envelopeSchema = regexp.MustCompile(`^version [1-9][0-9]* of `)

// ViewOf returns a function that appends the JSON view of bytes, made from the schema of their codec alone, for whoever has
// bytes and no program that knows their types. ok is false if the schema does not say enough, as those of Protobuf and Avro
// do not. Values of a Versioned codec are shown as the version they were written by.
func ViewOf(schema string) (view func(dst, b []byte) ([]byte, error), ok bool) {
	if prefix := envelopeSchema.FindString(schema); prefix != "" {
		inner, ok := ViewOf(strings.TrimPrefix(schema, prefix))
		return func(dst, b []byte) ([]byte, error) {
			_, b = openEnvelope(b)
			return inner(dst, b)
		}, ok
	}
	if strings.HasPrefix(schema, "json:") {
		return appendJSON, true
	}
	switch schema {
	case "string":
		return String().JSON, true
	case "bytes":
		return Bytes().JSON, true
	case "bool":
		return Bool().JSON, true
	case "int64":
		return Int64().JSON, true
	case "int32":
		return Int32().JSON, true
	case "int16":
		return word16[int16]{"int16"}.JSON, true
	case "int8":
		return word8[int8]{"int8"}.JSON, true
	case "uint64":
		return word64[uint64]{"uint64"}.JSON, true
	case "uint32":
		return word32[uint32]{"uint32"}.JSON, true
	case "uint16":
		return word16[uint16]{"uint16"}.JSON, true
	case "uint8":
		return word8[uint8]{"uint8"}.JSON, true
	case "float64":
		return Float64().JSON, true
	case "float32":
		return float32Codec{}.JSON, true
	}
	return nil, false
}
