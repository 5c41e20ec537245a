package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// MaxVersion is the largest version of a Versioned codec.
const MaxVersion = 255

// envelopeMark begins an encoding that names its version. No text in UTF-8, no JSON and no protobuf message begins with
// it.
const envelopeMark = 0xff

// envelopeFrame is what an envelope adds to the bytes of a value.
const envelopeFrame = 6

// Older is how values of an earlier version are read.
type Older[T any] struct {
	// Decode makes a value of the present type of bytes of the version.
	Decode func(b []byte) (T, error)
	// JSON appends the JSON view of bytes of the version.
	JSON func(dst, b []byte) ([]byte, error)
	// Aliases says that decoded values may share memory with the bytes.
	Aliases bool
}

// VersionError reports bytes of a version that a Versioned codec does not read.
type VersionError struct {
	Have int // of the bytes
	Want int // the newest the codec reads
}

func (e *VersionError) Error() string {
	if e.Have > e.Want {
		return fmt.Sprintf("codec: the value was written by state version %d, this build reads versions up to %d", e.Have, e.Want)
	}
	return fmt.Sprintf("codec: the value was written by state version %d, and this build, of state version %d, has no migration from it", e.Have, e.Want)
}

// Versioned returns the codec of values whose form has changed over time: it writes the present version, which is at
// least 1, and reads earlier ones by way of older. Bytes of version 0 are those of a plain codec; from version 1 on they
// are in an envelope:
//
//	+------+---------+----------------+--------+
//	| 0xff | version | bytes of inner | crc32c |
//	| 1    | 1       |                | 4      |
//	+------+---------+----------------+--------+
//
// The checksum is of version and bytes. Bytes of version 0 could be taken for an envelope only if they begin with 0xff,
// which text, JSON and protobuf never do, and if their checksum fits by chance, which happens to one in four billion of
// those that do. A program that does not know the envelope, such as one of Kafka Streams, cannot read it.
//
// The codec is Nullable if inner is.
func Versioned[T any](inner Codec[T], version int, older map[int]Older[T]) Codec[T] {
	v := versioned[T]{inner: inner, version: version, older: older}
	a, known := inner.(Aliasing)
	v.aliases = !known || a.Aliases()
	for _, o := range older {
		v.aliases = v.aliases || o.Aliases
	}
	if n, ok := inner.(Nullable[T]); ok {
		return nullableVersioned[T]{v, n}
	}
	return v
}

type versioned[T any] struct {
	inner   Codec[T]
	version int
	older   map[int]Older[T]
	aliases bool
}

type nullableVersioned[T any] struct {
	versioned[T]
	Nullable[T]
}

func (c versioned[T]) Append(dst []byte, v T) ([]byte, error) {
	from := len(dst)
	dst, err := c.inner.Append(append(dst, envelopeMark, byte(c.version)), v)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint32(dst, envelopeChecksum(dst[from+1:])), nil
}

func (c versioned[T]) Decode(b []byte) (T, error) {
	version, b := openEnvelope(b)
	if version == c.version {
		return c.inner.Decode(b)
	}
	o, ok := c.older[version]
	if !ok {
		var zero T
		return zero, &VersionError{Have: version, Want: c.version}
	}
	return o.Decode(b)
}

func (c versioned[T]) JSON(dst, b []byte) ([]byte, error) {
	version, b := openEnvelope(b)
	if version == c.version {
		return c.inner.JSON(dst, b)
	}
	o, ok := c.older[version]
	if !ok {
		return nil, &VersionError{Have: version, Want: c.version}
	}
	return o.JSON(dst, b)
}

func (c versioned[T]) Schema() string { return VersionedSchema(c.version, c.inner.Schema()) }

// VersionedSchema is the schema of a Versioned codec, or that of its inner one for version 0.
func VersionedSchema(version int, inner string) string {
	if version == 0 {
		return inner
	}
	return fmt.Sprintf("version %d of %s", version, inner)
}

func (c versioned[T]) Aliases() bool { return c.aliases }

// openEnvelope returns the version of bytes and what is inside.
func openEnvelope(b []byte) (version int, inner []byte) {
	if len(b) < envelopeFrame || b[0] != envelopeMark || b[1] == 0 {
		return 0, b
	}
	end := len(b) - 4
	if binary.BigEndian.Uint32(b[end:]) != envelopeChecksum(b[1:end]) {
		return 0, b
	}
	return int(b[1]), slices.Clip(b[2:end])
}

func envelopeChecksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
