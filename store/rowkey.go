package store

import (
	"bytes"
	"encoding/binary"
)

// Keys of rows, without the number of the store, which comes first in the DB. All integers are big-endian; "time" is an
// int64 in ms with its sign bit flipped, so that bytes compare as the times do; "key'" is a key escaped and terminated,
// so that no key is a prefix of another one and bytes compare as the keys do.
//
//	window     | end, time 8 | key |
//	session    | key' | end, time 8 | start, time 8 |
//	versioned  | key' | valid from, time 8, all bits flipped |
//	timers     | key' | tag |
//	dedup      | bucket, 4 | hash, 16 |
//	list       | key' |                      first and last index
//	           | key' | index, 8 |           value
//	due times  | time 8 | key of the row |   see due.go
//
//	key'       0x00 in the key becomes 0x00 0xff, and 0x00 0x01 ends it

// AppendTimeKey appends t so that bytes compare as the times do: big-endian, the sign bit flipped.
func AppendTimeKey(dst []byte, t int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t)^1<<63)
}

// timeAt reads what AppendTimeKey has written.
func timeAt(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// AppendWindowKey appends the key of a row of a Window store.
func AppendWindowKey(dst []byte, end int64, key []byte) []byte {
	return append(AppendTimeKey(dst, end), key...)
}

// ParseWindowKey takes the key of a row of a Window store apart; ok is false if it is none.
func ParseWindowKey(b []byte) (end int64, key []byte, ok bool) {
	if len(b) < 8 {
		return 0, nil, false
	}
	return timeAt(b), b[8:], true
}

// AppendTermKey appends key escaped and terminated.
func AppendTermKey(dst, key []byte) []byte {
	if bytes.IndexByte(key, 0) < 0 {
		return append(append(dst, key...), 0, 1)
	}
	for _, c := range key {
		if dst = append(dst, c); c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// ParseTermKey takes apart what begins with an escaped key. key is a part of b if there was nothing to escape.
func ParseTermKey(b []byte) (key, rest []byte, ok bool) {
	n, zeros := termLen(b)
	if n < 0 {
		return nil, nil, false
	}
	key, rest = b[:n:n], b[n+2:]
	if zeros > 0 {
		key = appendUnescaped(make([]byte, 0, n-zeros), key)
	}
	return key, rest, true
}

// termLen returns the length of the escaped key at the start of b, without its end, and how many bytes in it are
// escaped; -1 if there is none.
func termLen(b []byte) (n, zeros int) {
	for i := 0; i+1 < len(b); {
		if b[i] != 0 {
			i++
			continue
		}
		switch b[i+1] {
		case 1:
			return i, zeros
		case 0xff:
			zeros++
			i += 2
		default:
			return -1, 0
		}
	}
	return -1, 0
}

// appendUnescaped appends a key as it was before it was escaped.
func appendUnescaped(dst, key []byte) []byte {
	for i := 0; i < len(key); i++ {
		dst = append(dst, key[i])
		if key[i] == 0 {
			i++
		}
	}
	return dst
}

// AppendSessionKey appends the key of a row of a Session store.
func AppendSessionKey(dst, key []byte, s Span) []byte {
	return AppendTimeKey(AppendTimeKey(AppendTermKey(dst, key), s.End), s.Start)
}

// ParseSessionKey takes the key of a row of a Session store apart.
func ParseSessionKey(b []byte) (key []byte, s Span, ok bool) {
	key, rest, ok := ParseTermKey(b)
	if !ok || len(rest) != 16 {
		return nil, Span{}, false
	}
	return key, Span{Start: timeAt(rest[8:]), End: timeAt(rest)}, true
}

// appendSessionUser appends the user's key of a row of a Session store and returns its span.
func appendSessionUser(dst, b []byte) (key []byte, s Span, ok bool) {
	n, zeros := termLen(b)
	if n < 0 || len(b) != n+2+16 {
		return dst, Span{}, false
	}
	if zeros == 0 {
		dst = append(dst, b[:n]...)
	} else {
		dst = appendUnescaped(dst, b[:n])
	}
	return dst, Span{Start: timeAt(b[n+10:]), End: timeAt(b[n+2:])}, true
}

// AppendVersionKey appends the key of a row of a Versioned store: the latest version comes first.
func AppendVersionKey(dst, key []byte, from int64) []byte {
	return AppendTimeKey(AppendTermKey(dst, key), ^from)
}

// ParseVersionKey takes the key of a row of a Versioned store apart.
func ParseVersionKey(b []byte) (key []byte, from int64, ok bool) {
	key, rest, ok := ParseTermKey(b)
	if !ok || len(rest) != 8 {
		return nil, 0, false
	}
	return key, ^timeAt(rest), true
}

// AppendTimerKey appends the key of a row of a Timers store.
func AppendTimerKey(dst, key, tag []byte) []byte { return append(AppendTermKey(dst, key), tag...) }

// AppendDedupKey appends the key of a row of a Dedup store.
func AppendDedupKey(dst []byte, bucket uint32, hash *[16]byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, bucket), hash[:]...)
}

// AppendListKey appends the key of a value of a List store.
func AppendListKey(dst, key []byte, index uint64) []byte {
	return binary.BigEndian.AppendUint64(AppendTermKey(dst, key), index)
}
