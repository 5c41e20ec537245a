package changelog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/internal/wire"
)

const keyShape = "shape/"

// ShapeRecord is what the control topic records of an operator with state: what a later topology is compared with. Builds
// that do not know the kind keep such records and do not change them, which is why each names its topology.
type ShapeRecord struct {
	Operator    string // id
	Fingerprint string // state fingerprint of the last topology that had the operator
	Shape       []byte // as package topology encodes it
}

// ShapeRecordOf returns the record of one operator.
//
//	+---------+-------------+-------+--------+
//	| version | fingerprint | shape | crc32c |
//	| 1 byte  | str         | str   | 4      |
//	+---------+-------------+-------+--------+
func ShapeRecordOf(s ShapeRecord) ControlRecord {
	b := wire.AppendString([]byte{ControlVersion}, s.Fingerprint)
	return ControlRecord{keyShape + s.Operator, sealed(wire.AppendString(b, s.Shape))}
}

// applyShape folds a record of an operator.
func (c *ControlState) applyShape(key string, value []byte) error {
	id := strings.TrimPrefix(key, keyShape)
	if value == nil {
		delete(c.Shapes, id)
		return nil
	}
	r, err := openControl(value)
	if err != nil {
		return fmt.Errorf("changelog: operator %q: %w", id, err)
	}
	s := ShapeRecord{Operator: id, Fingerprint: r.String()}
	s.Shape = slices.Clone(r.Bytes(r.Count(1)))
	if err := finish(r); err != nil {
		return fmt.Errorf("changelog: operator %q: %w", id, err)
	}
	c.Shapes = put(c.Shapes, id, s)
	return nil
}
