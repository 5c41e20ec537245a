package window

import (
	"encoding/binary"
	"fmt"
)

// Keys of the record headers that describe a pane.
const (
	PaneHeader      = "tm-p"
	BoundsHeader    = "tm-win"
	WatermarkHeader = "tm-wm"
	OpHeader        = "tm-op"
)

// Bits of the first byte of PaneHeader.
const (
	timingBits = 0x03
	firstBit   = 0x04
	lastBit    = 0x08
)

// AppendPaneHeader appends the value of PaneHeader.
//
//	flags (bits 0-1 timing, 2 first, 3 last, 4-7 zero) | varint Index | varint NonSpeculative
//
// Varints are signed, as those of encoding/binary and of Kafka's records.
func AppendPaneHeader(dst []byte, p *Pane) []byte {
	f := byte(p.Timing) & timingBits
	if p.First {
		f |= firstBit
	}
	if p.Last {
		f |= lastBit
	}
	dst = append(dst, f)
	dst = binary.AppendVarint(dst, int64(p.Index))
	return binary.AppendVarint(dst, int64(p.NonSpeculative))
}

// ParsePaneHeader sets the fields of p that PaneHeader carries. The error is an ErrMalformed, and p is unchanged then.
func ParsePaneHeader(p *Pane, b []byte) error {
	d := decoder{b: b}
	f, index, nonspec := d.byte(), d.varint(), d.varint()
	timing := Timing(f & timingBits)
	switch {
	case d.bad || len(d.b) != 0:
		return headerError(PaneHeader, len(b))
	case f&^(timingBits|firstBit|lastBit) != 0 || timing > TimingLate:
		return fmt.Errorf("window: header %s: flags %#x: %w", PaneHeader, f, ErrMalformed)
	case index < 0 || nonspec < -1 || int64(int(index)) != index || int64(int(nonspec)) != nonspec:
		return fmt.Errorf("window: header %s: index %d, %d: %w", PaneHeader, index, nonspec, ErrMalformed)
	}
	p.Timing, p.First, p.Last = timing, f&firstBit != 0, f&lastBit != 0
	p.Index, p.NonSpeculative = int(index), int(nonspec)
	return nil
}

// AppendBoundsHeader appends the value of BoundsHeader: Start and End, 8 bytes each, big-endian two's complement.
func AppendBoundsHeader(dst []byte, b Bounds) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.Start))
	return binary.BigEndian.AppendUint64(dst, uint64(b.End))
}

// ParseBoundsHeader decodes the value of BoundsHeader. The error is an ErrMalformed.
func ParseBoundsHeader(b []byte) (Bounds, error) {
	if len(b) != 16 {
		return Bounds{}, headerError(BoundsHeader, len(b))
	}
	r := Bounds{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
	if r.Start >= r.End {
		return Bounds{}, fmt.Errorf("window: header %s: %s: %w", BoundsHeader, r, ErrMalformed)
	}
	return r, nil
}

// AppendWatermarkHeader appends the value of WatermarkHeader: 8 bytes, big-endian two's complement.
func AppendWatermarkHeader(dst []byte, w int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(w))
}

// ParseWatermarkHeader decodes the value of WatermarkHeader. The error is an ErrMalformed.
func ParseWatermarkHeader(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, headerError(WatermarkHeader, len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

func headerError(key string, n int) error {
	return fmt.Errorf("window: header %s: %d bytes: %w", key, n, ErrMalformed)
}
