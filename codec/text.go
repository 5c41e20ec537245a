package codec

import (
	"encoding/base64"
	"encoding/json/jsontext"
)

// String returns the codec of Kafka's StringSerializer: the bytes of the string as they are. A decoded string is a
// copy: strings are kept in user values too easily for them to hold on to fetched batches.
func String() Codec[string] { return stringCodec{} }

// Bytes returns the codec that leaves bytes as they are. Decoded slices alias their input; nil stands for null and an
// empty slice does not.
func Bytes() Codec[[]byte] { return bytesCodec{} }

type stringCodec struct{}

func (stringCodec) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }
func (stringCodec) Decode(b []byte) (string, error)             { return string(b), nil }
func (stringCodec) Schema() string                              { return "string" }
func (stringCodec) Aliases() bool                               { return false }

// JSON shows bytes that are not UTF-8 as replacement characters.
func (stringCodec) JSON(dst, b []byte) ([]byte, error) {
	// The only error of AppendQuote is invalid UTF-8, and it still appends the repaired string.
	dst, _ = jsontext.AppendQuote(dst, b)
	return dst, nil
}

type bytesCodec struct{}

func (bytesCodec) Append(dst []byte, v []byte) ([]byte, error) {
	if v == nil {
		return nil, nullError("bytes")
	}
	return append(dst, v...), nil
}

func (bytesCodec) Decode(b []byte) ([]byte, error) {
	if b == nil {
		return []byte{}, nil
	}
	return b, nil
}

func (bytesCodec) JSON(dst, b []byte) ([]byte, error) {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"'), nil
}

func (bytesCodec) Schema() string       { return "bytes" }
func (bytesCodec) Null() []byte         { return nil }
func (bytesCodec) IsNull(v []byte) bool { return v == nil }
func (bytesCodec) Aliases() bool        { return true }
