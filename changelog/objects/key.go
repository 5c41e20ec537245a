package objects

import (
	"errors"
	"fmt"
	"strings"
)

// ErrKey reports a key, or a range of one, that no store accepts. Test with errors.Is.
var ErrKey = errors.New("not an object key")

// Limits of keys: those of S3, and of a file's name.
const (
	maxKey  = 1000
	maxPart = 255
)

// CheckKey returns ErrKey unless the key consists of parts of ASCII letters, digits, dots, hyphens and underscores, joined by
// slashes, none of them "." or "..": what topics and operators of an app are named with. A key is at most 1,000 bytes, a
// part at most 255. Such a key is the same in a bucket, in a path and in a URL, and leads out of no directory.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("objects: %w: %d bytes", ErrKey, len(key))
	}
	for part := range strings.SplitSeq(key, "/") {
		if !validPart(part) {
			return fmt.Errorf("objects: %w: %q", ErrKey, key)
		}
	}
	return nil
}

func validPart(part string) bool {
	if part == "" || part == "." || part == ".." || len(part) > maxPart {
		return false
	}
	for i := range len(part) {
		c := part[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// checkPrefix returns ErrKey for a prefix with which no key begins. The last part may be cut anywhere.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	// "a/.." is a prefix of "a/..b", and "a/" of "a/b".
	if err := CheckKey(prefix + "x"); err != nil {
		return fmt.Errorf("objects: %w: prefix %q", ErrKey, prefix)
	}
	return nil
}

// checkRange returns ErrKey for a range that begins before the object does.
func checkRange(key string, offset int64) error {
	if offset < 0 {
		return fmt.Errorf("objects: %w: %s from offset %d", ErrKey, key, offset)
	}
	return CheckKey(key)
}
