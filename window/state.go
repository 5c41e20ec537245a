package window

import (
	"encoding/binary"
	"fmt"
)

// Flags are the yes-or-no part of a State.
type Flags uint8

const (
	// Dirty is set while the window holds something that no pane has shown.
	Dirty Flags = 1 << iota
	// Emitted is set while the value of a pane of this window is what downstream knows of it.
	Emitted
	// Past is set once the state accounts for its on-time firing, or for a record after the watermark had reached the end
	// of the window.
	Past

	hasNumbers
	hasCount
	hasHash
	merged
)

// State is what has to be remembered of one window of one key besides its value. The zero State is that of a window
// that does not exist yet; one with nothing but Dirty set is a window that holds data and has not fired.
//
// That a window fired on time is not stored when it happens: whether it did follows from the watermark, so that the
// firing of many windows writes no rows. The methods of Config that take a watermark bring the state up to date first,
// which they call settling. It does no harm to store the state of a window that fired on time.
type State struct {
	// Panes counts the panes emitted so far, NonSpeculative those that were not early.
	Panes, NonSpeculative uint32
	// Count counts the records since the last firing, if a trigger or the side output needs to know.
	Count uint32
	Flags Flags
	// Hash is the hash of the value emitted last, if NeedsHash.
	Hash uint64
	// MaxTime is the latest record time. It is not part of the encoding: the row that holds the state is stored with
	// this time.
	MaxTime int64
}

// exists reports whether the window holds data.
func (s *State) exists() bool { return s.Flags != 0 }

// Append appends the encoding of the state without MaxTime. It is one byte for a window that has not fired.
//
//	flags (bits 0-2 Dirty, Emitted, Past; 3 numbers; 4 count; 5 hash; 6-7 zero)
//	[uvarint Panes, uvarint NonSpeculative] [uvarint Count] [Hash, 8 bytes big-endian]
func (s *State) Append(dst []byte) []byte {
	f := s.Flags & (Dirty | Emitted | Past)
	if s.Panes != 0 || s.NonSpeculative != 0 {
		f |= hasNumbers
	}
	if s.Count != 0 {
		f |= hasCount
	}
	if s.Hash != 0 {
		f |= hasHash
	}
	dst = append(dst, byte(f))
	if f&hasNumbers != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Panes))
		dst = binary.AppendUvarint(dst, uint64(s.NonSpeculative))
	}
	if f&hasCount != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Count))
	}
	if f&hasHash != 0 {
		dst = binary.BigEndian.AppendUint64(dst, s.Hash)
	}
	return dst
}

// ParseState decodes a state at the start of b and returns what follows it. MaxTime is left at 0 for the caller to set.
// The error is an ErrMalformed.
func ParseState(b []byte) (s State, rest []byte, err error) {
	d := decoder{b: b}
	f := Flags(d.byte())
	if f&^(Dirty|Emitted|Past|hasNumbers|hasCount|hasHash) != 0 {
		return State{}, nil, fmt.Errorf("window: state: flags %#x: %w", uint8(f), ErrMalformed)
	}
	s.Flags = f & (Dirty | Emitted | Past)
	if f&hasNumbers != 0 {
		s.Panes, s.NonSpeculative = d.uint32(), d.uint32()
	}
	if f&hasCount != 0 {
		s.Count = d.uint32()
	}
	if f&hasHash != 0 {
		s.Hash = d.uint64()
	}
	if d.bad {
		return State{}, nil, fmt.Errorf("window: state: %d bytes: %w", len(b), ErrMalformed)
	}
	return s, d.b, nil
}
