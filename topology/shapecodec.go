package topology

import (
	"encoding/binary"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ShapeVersion is the newest form of recorded shapes that this package writes and reads. It grows when a build that does
// not know the new form would take an incompatible topology for a compatible one; other members are simply added.
const ShapeVersion = 1

// ErrShape reports bytes that are not a shape.
var ErrShape = errors.New("not a shape")

// ShapeVersionError reports a shape that a newer build has written.
type ShapeVersionError struct{ Have, Want int }

func (e *ShapeVersionError) Error() string {
	return fmt.Sprintf("topology: shape has version %d, this build reads versions up to %d", e.Have, e.Want)
}

// Append appends the form in which an operator is recorded: always the same bytes for the same operator.
//
//	+---------+------------------------+--------+
//	| version | JSON, members in order | crc32c |
//	| 1 byte  |                        | 4      |
//	+---------+------------------------+--------+
func (o OperatorShape) Append(dst []byte) ([]byte, error) {
	text, err := json.Marshal(o, json.Deterministic(true))
	if err != nil {
		return dst, fmt.Errorf("topology: encode the shape of %s: %w", o.ID, err)
	}
	from := len(dst)
	dst = append(append(dst, ShapeVersion), text...)
	return binary.BigEndian.AppendUint32(dst, shapeChecksum(dst[from:])), nil
}

// DecodeOperatorShape reads what Append wrote. The error is a *ShapeVersionError for a newer form, else an ErrShape.
func DecodeOperatorShape(b []byte) (OperatorShape, error) {
	if len(b) < 5 {
		return OperatorShape{}, fmt.Errorf("topology: decode shape: %w: %d bytes", ErrShape, len(b))
	}
	body := b[:len(b)-4]
	if want, have := binary.BigEndian.Uint32(b[len(body):]), shapeChecksum(body); want != have {
		return OperatorShape{}, fmt.Errorf("topology: decode shape: %w: checksum %08x, computed %08x", ErrShape, want, have)
	}
	if v := int(body[0]); v < 1 || v > ShapeVersion {
		return OperatorShape{}, &ShapeVersionError{Have: v, Want: ShapeVersion}
	}
	var o OperatorShape
	if err := json.Unmarshal(body[1:], &o); err != nil {
		return OperatorShape{}, fmt.Errorf("topology: decode shape: %w: %v", ErrShape, err)
	}
	return o, nil
}

func shapeChecksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// shapeFile is the JSON form of a shape.
type shapeFile struct {
	Version int `json:"version"`
	Shape   `json:",inline"`
}

// WriteJSON writes the shape for people and for the command tidemark check.
func (s Shape) WriteJSON(w io.Writer) error {
	text, err := json.Marshal(shapeFile{ShapeVersion, s}, json.Deterministic(true), jsontext.WithIndent("  "))
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("topology: write shape: %w", err)
	}
	return nil
}

// ReadShape reads what WriteJSON wrote. The error is a *ShapeVersionError for a newer form, else an ErrShape or that of
// the reader.
func ReadShape(r io.Reader) (Shape, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Shape{}, fmt.Errorf("topology: read shape: %w", err)
	}
	var f shapeFile
	if err := json.Unmarshal(text, &f); err != nil {
		return Shape{}, fmt.Errorf("topology: read shape: %w: %v", ErrShape, err)
	}
	switch {
	case f.Version == 0:
		return Shape{}, fmt.Errorf("topology: read shape: %w: it has no version", ErrShape)
	case f.Version > ShapeVersion:
		return Shape{}, &ShapeVersionError{Have: f.Version, Want: ShapeVersion}
	}
	return f.Shape, nil
}
