package store

import (
	"encoding/binary"
	"errors"
	"math"
)

var errLayout = errors.New("not in the layout of the store")

// maxSuffix is the room for what a layout adds to a key.
const maxSuffix = 20

// layoutsOf returns the layouts of stores, nil where rows are the same in the changelog.
func layoutsOf(specs []Spec) []Layout {
	out := make([]Layout, len(specs))
	for i, s := range specs {
		switch {
		case s.Layout != nil:
			out[i] = s.Layout
		case s.Kind == Session:
			out[i] = SessionLayout(false)
		case s.Kind == Versioned:
			out[i] = VersionedLayout()
		case s.Kind == Expiring:
			out[i] = ExpiringLayout()
		}
	}
	return out
}

// WindowLayout is the layout of Kafka Streams' window stores:
//
//	key    | key | start, 8 | sequence number, 4, 0 |      big-endian, signed
//	value  | value |
//
// startOf and endOf, which are pure, return the start of the window with an end and the end of the window with a start.
// With panes, a local value begins with the length of the pane state, as a uvarint, and that state: it travels in the
// header.
func WindowLayout(startOf, endOf func(int64) int64, panes bool) Layout {
	return windowLayout{startOf, endOf, panes}
}

type windowLayout struct {
	startOf, endOf func(int64) int64
	panes          bool
}

func (l windowLayout) Export(dst, key, value []byte) (ckey, cvalue, header []byte) {
	end, user, ok := ParseWindowKey(key)
	if !ok {
		return nil, nil, nil
	}
	ckey = binary.BigEndian.AppendUint64(append(dst, user...), uint64(l.startOf(end)))
	ckey = binary.BigEndian.AppendUint32(ckey, 0)
	cvalue, header = splitPanes(l.panes, value)
	return ckey, cvalue, header
}

func (l windowLayout) Import(dst, ckey, cvalue, header []byte, _ int64) (key, value []byte, err error) {
	n := len(ckey) - 12
	if n < 0 {
		return nil, nil, errLayout
	}
	start := int64(binary.BigEndian.Uint64(ckey[n:]))
	key = AppendWindowKey(dst, l.endOf(start), ckey[:n])
	return withPanes(l.panes, key, cvalue, header)
}

// splitPanes takes the pane state off a local value.
func splitPanes(panes bool, value []byte) (cvalue, header []byte) {
	if !panes || value == nil {
		return value, nil
	}
	header, cvalue, ok := cutPanes(value)
	if !ok {
		return value, nil
	}
	return cvalue, header
}

// cutPanes divides a local value that begins with the state of a pane; without any the header is nil.
func cutPanes(b []byte) (header, value []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	at := size + int(n)
	if n > 0 {
		header = b[size:at:at]
	}
	return header, b[at:], true
}

// withPanes appends the local value to key and returns both.
func withPanes(panes bool, key, cvalue, header []byte) (k, v []byte, err error) {
	if !panes || cvalue == nil {
		return key, cvalue, nil
	}
	n := len(key)
	all := append(binary.AppendUvarint(key, uint64(len(header))), header...)
	all = append(all, cvalue...)
	return all[:n:n], all[n:], nil
}

// SessionLayout is the layout of Kafka Streams' session stores:
//
//	key    | key | end, 8 | start, 8 |      big-endian, signed
//	value  | value |
//
// Kafka Streams' sessions include their last moment, so the end is one less than ours. panes is as in WindowLayout.
func SessionLayout(panes bool) Layout { return sessionLayout{panes} }

type sessionLayout struct{ panes bool }

func (l sessionLayout) Export(dst, key, value []byte) (ckey, cvalue, header []byte) {
	ckey, s, ok := appendSessionUser(dst, key)
	if !ok {
		return nil, nil, nil
	}
	if s.End > math.MinInt64 {
		s.End--
	}
	ckey = binary.BigEndian.AppendUint64(ckey, uint64(s.End))
	ckey = binary.BigEndian.AppendUint64(ckey, uint64(s.Start))
	cvalue, header = splitPanes(l.panes, value)
	return ckey, cvalue, header
}

func (l sessionLayout) Import(dst, ckey, cvalue, header []byte, _ int64) (key, value []byte, err error) {
	n := len(ckey) - 16
	if n < 0 {
		return nil, nil, errLayout
	}
	s := Span{Start: int64(binary.BigEndian.Uint64(ckey[n+8:])), End: int64(binary.BigEndian.Uint64(ckey[n:]))}
	if s.End < math.MaxInt64 {
		s.End++
	}
	return withPanes(l.panes, AppendSessionKey(dst, ckey[:n], s), cvalue, header)
}

// VersionedLayout is the layout of Kafka Streams' versioned stores: the plain key, and the value that is valid from the
// time of the record, null if there is none from then on. Versions that are dropped leave no record.
func VersionedLayout() Layout { return versionedLayout{} }

type versionedLayout struct{}

func (versionedLayout) Export(dst, key, value []byte) (ckey, cvalue, header []byte) {
	user, _, ok := ParseVersionKey(key)
	if !ok || len(value) == 0 {
		return nil, nil, nil
	}
	if value[0] == versionValue {
		cvalue = value[1:]
	}
	return append(dst, user...), cvalue, nil
}

func (versionedLayout) Import(dst, ckey, cvalue, _ []byte, time int64) (key, value []byte, err error) {
	key = AppendVersionKey(dst, ckey, time)
	n := len(key)
	if cvalue == nil {
		all := append(key, versionNull)
		return all[:n:n], all[n:], nil
	}
	all := append(append(key, versionValue), cvalue...)
	return all[:n:n], all[n:], nil
}

// ExpiringLayout has the plain key and value; the time until which the value is good travels in the header, 8 bytes
// big-endian.
func ExpiringLayout() Layout { return expiringLayout{} }

type expiringLayout struct{}

func (expiringLayout) Export(_, key, value []byte) (ckey, cvalue, header []byte) {
	if len(value) < 8 {
		return key, nil, nil
	}
	return key, value[8:], value[:8:8]
}

func (expiringLayout) Import(dst, ckey, cvalue, header []byte, _ int64) (key, value []byte, err error) {
	if cvalue == nil {
		return ckey, nil, nil
	}
	if len(header) != 8 {
		return nil, nil, errLayout
	}
	return ckey, append(append(dst, header...), cvalue...), nil
}
