package changelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/internal/wire"
)

// ControlVersion is the newest layout of control records this package writes and reads.
const ControlVersion = 1

// ErrControl reports bytes that are not a control record of this application.
var ErrControl = errors.New("not a control record")

// StateRecord is the state fingerprint in force and what counts as equal to it.
type StateRecord struct {
	Fingerprint string   // of the topology whose members get tasks
	Compatible  []string // fingerprints of earlier topologies whose state it took over, oldest first
	Time        int64    // wall clock of the switch, milliseconds
}

// ControlRecord is one record of the control topic: the key decides the kind.
type ControlRecord struct {
	Key   string
	Value []byte // nil deletes what the key stands for
}

// ControlState is the control topic read from its start, folded. The zero value is
// that of an application that has never run.
type ControlState struct {
	Subs    map[string]SubTopology // by id
	Stores  map[string]StoreRecord // by id
	Shapes  map[string]ShapeRecord // by operator id
	Formats map[string]int         // format name → version in force
	State   *StateRecord           // nil: none written yet
	Unknown map[string][]byte      // records of kinds that later builds write, kept as they are
}

const (
	keySub    = "sub/"
	keyFormat = "format/"
	keyState  = "state"
)

// Empty reports whether nothing has been recorded.
func (c *ControlState) Empty() bool {
	return len(c.Subs) == 0 && len(c.Stores) == 0 && len(c.Shapes) == 0 && len(c.Formats) == 0 && c.State == nil && len(c.Unknown) == 0
}

// SubTopologies returns the recorded sub-topologies sorted by id, as Inherit takes them.
func (c *ControlState) SubTopologies() []SubTopology {
	var out []SubTopology
	for _, id := range slices.Sorted(maps.Keys(c.Subs)) {
		out = append(out, c.Subs[id])
	}
	return out
}

// Apply folds one record of the topic, in offset order, and keeps nothing of value. The error is ErrControl for
// damaged bytes and *VersionError for a layout this build does not know; a kind it
// does not know is kept, because it says nothing about the kinds it does.
func (c *ControlState) Apply(key string, value []byte) error {
	switch {
	case key == keyState:
		if value == nil {
			c.State = nil
			return nil
		}
		s, err := decodeState(value)
		if err != nil {
			return err
		}
		c.State = s
	case strings.HasPrefix(key, keySub):
		id := key[len(keySub):]
		if value == nil {
			delete(c.Subs, id)
			return nil
		}
		s, err := decodeSub(id, value)
		if err != nil {
			return err
		}
		c.Subs = put(c.Subs, id, s)
	case strings.HasPrefix(key, keyStore):
		return c.applyStore(key, value)
	case strings.HasPrefix(key, keyShape):
		return c.applyShape(key, value)
	case strings.HasPrefix(key, keyLows):
		// Of the moment: who waits for it reads it by itself.
	case strings.HasPrefix(key, keyFormat):
		name := key[len(keyFormat):]
		if value == nil {
			delete(c.Formats, name)
			return nil
		}
		v, err := decodeFormat(value)
		if err != nil {
			return err
		}
		// The version in force never goes down, whoever writes last.
		c.Formats = put(c.Formats, name, max(v, c.Formats[name]))
	default:
		if value == nil {
			delete(c.Unknown, key)
			return nil
		}
		c.Unknown = put(c.Unknown, key, slices.Clone(value))
	}
	return nil
}

func put[V any](m map[string]V, k string, v V) map[string]V {
	if m == nil {
		m = make(map[string]V)
	}
	m[k] = v
	return m
}

// SubRecord returns the record of one sub-topology.
//
//	+---------+-----------+--------+--------+
//	| version | operators | topics | crc32c |
//	| 1 byte  | strings   | strings| 4      |
//	+---------+-----------+--------+--------+
//	strings = uv count, then uv length and bytes each
func SubRecord(s SubTopology) ControlRecord {
	b := []byte{ControlVersion}
	b = appendStrings(b, s.Operators)
	b = appendStrings(b, s.Topics)
	return ControlRecord{keySub + s.ID, sealed(b)}
}

// FormatRecord returns the record of a format's version in force.
//
//	+---------+-------------+--------+
//	| version | uv in force | crc32c |
//	+---------+-------------+--------+
func FormatRecord(name string, version int) ControlRecord {
	return ControlRecord{keyFormat + name, sealed(wire.AppendUvarint([]byte{ControlVersion}, uint64(version)))}
}

// StateRecordOf returns the record of the state fingerprint in force.
//
//	+---------+---------+-------------+------------+--------+
//	| version | sv time | fingerprint | compatible | crc32c |
//	+---------+---------+-------------+------------+--------+
func StateRecordOf(s StateRecord) ControlRecord {
	b := wire.AppendVarint([]byte{ControlVersion}, s.Time)
	b = wire.AppendString(b, s.Fingerprint)
	b = appendStrings(b, s.Compatible)
	return ControlRecord{keyState, sealed(b)}
}

func sealed(b []byte) []byte { return binary.BigEndian.AppendUint32(b, checksum(b)) }

func appendStrings(b []byte, list []string) []byte {
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = wire.AppendString(b, s)
	}
	return b
}

func readStrings(r *wire.Reader) (list []string) {
	for range r.Count(1) {
		list = append(list, r.String())
	}
	return list
}

func openControl(value []byte) (*wire.Reader, error) {
	body, err := checked(value, "control", ControlVersion, ControlVersion, ErrControl)
	if err != nil {
		return nil, err
	}
	return wire.NewReader(body[1:]), nil
}

func finish(r *wire.Reader) error {
	if err := r.Err(); err != nil {
		return fmt.Errorf("changelog: decode control: %w: %v", ErrControl, err)
	}
	if r.Len() != 0 {
		return fmt.Errorf("changelog: decode control: %w: %d bytes too many", ErrControl, r.Len())
	}
	return nil
}

func decodeSub(id string, value []byte) (SubTopology, error) {
	r, err := openControl(value)
	if err != nil {
		return SubTopology{}, err
	}
	s := SubTopology{ID: id, Operators: readStrings(r), Topics: readStrings(r)}
	return s, finish(r)
}

func decodeFormat(value []byte) (int, error) {
	r, err := openControl(value)
	if err != nil {
		return 0, err
	}
	v := int(r.Int32())
	return v, finish(r)
}

func decodeState(value []byte) (*StateRecord, error) {
	r, err := openControl(value)
	if err != nil {
		return nil, err
	}
	s := &StateRecord{Time: r.Varint()}
	s.Fingerprint = r.String()
	s.Compatible = readStrings(r)
	return s, finish(r)
}
