package store

import "encoding/binary"

// What a reader who has no view needs to take rows apart.

// VersionValue takes the value of a row of a Versioned store apart: gone says that the key has none from then on.
func VersionValue(b []byte) (value []byte, gone bool) {
	if len(b) == 0 || b[0] != versionValue {
		return nil, true
	}
	return b[1:], false
}

// ParseListKey takes the key of a value of a List store apart. ok is false for the row that holds the range of a list.
func ParseListKey(b []byte) (key []byte, index uint64, ok bool) {
	key, rest, ok := ParseTermKey(b)
	if !ok || len(rest) != 8 {
		return nil, 0, false
	}
	return key, binary.BigEndian.Uint64(rest), true
}

// ListValue returns the value in a row of a List store whose key ParseListKey has taken apart.
func ListValue(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b[1:]
}

// PaneValue takes the state of a pane off a value, see WindowLayout.
func PaneValue(b []byte) (value []byte, ok bool) {
	_, value, ok = cutPanes(b)
	return value, ok
}
