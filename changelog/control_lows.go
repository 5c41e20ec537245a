package changelog

import (
	"fmt"
	"strings"

	"github.com/tidemark/tidemark/internal/wire"
)

const keyLows = "lows/"

// Lows is what an instance tells the others while it reads a backlog: the lowest watermark of its inputs per group of
// connected sub-topologies. It is of the moment and no part of the folded state.
type Lows struct {
	Instance string
	Sent     int64 // wall clock of the instance, milliseconds
	Groups   []Low
}

// Low is the lowest watermark of one group.
type Low struct {
	Group string // the id of the first of its sub-topologies
	W     int64
}

// Record returns the record of the control topic that tells it; without groups that is one which deletes the former.
//
//	+---------+---------+----------+-----------------------------+--------+
//	| version | sv sent | uv count | per group: str id, sv W     | crc32c |
//	| 1 byte  |         |          |                             | 4      |
//	+---------+---------+----------+-----------------------------+--------+
func (l *Lows) Record() ControlRecord {
	key := keyLows + l.Instance
	if len(l.Groups) == 0 {
		return ControlRecord{key, nil}
	}
	b := wire.AppendVarint([]byte{ControlVersion}, l.Sent)
	b = wire.AppendUvarint(b, uint64(len(l.Groups)))
	for _, g := range l.Groups {
		b = wire.AppendVarint(wire.AppendString(b, g.Group), g.W)
	}
	return ControlRecord{key, sealed(b)}
}

// ParseLows reads a record of the control topic; ok is false for one of another kind. A deleted one has no groups.
func ParseLows(key string, value []byte) (l Lows, ok bool, err error) {
	instance, ok := strings.CutPrefix(key, keyLows)
	if !ok {
		return Lows{}, false, nil
	}
	l.Instance = instance
	if value == nil {
		return l, true, nil
	}
	r, err := openControl(value)
	if err != nil {
		return Lows{}, true, fmt.Errorf("changelog: lows of %s: %w", instance, err)
	}
	l.Sent = r.Varint()
	for range r.Count(2) {
		l.Groups = append(l.Groups, Low{Group: r.String(), W: r.Varint()})
	}
	return l, true, finish(r)
}
