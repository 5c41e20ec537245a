package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Task names whose snapshots they are.
type Task struct {
	App, Sub  string
	Partition int32
}

// String returns "<app>/<sub>/<partition>".
func (t Task) String() string { return fmt.Sprintf("%s/%s/%d", t.App, t.Sub, t.Partition) }

// Prefix returns what the keys of all objects of the task begin with.
func (t Task) Prefix() string { return t.String() + "/" }

// object returns the key of a file.
func (t Task) object(sum [sha256.Size]byte) string {
	return t.Prefix() + "sst/" + hex.EncodeToString(sum[:])
}

// manifest returns the key of a manifest with these bytes.
func (t Task) manifest(seq uint64, encoded []byte) string {
	sum := sha256.Sum256(encoded)
	return fmt.Sprintf("%smanifest/%016x-%x", t.Prefix(), seq, sum)
}

// parsedKey is what the key of an object says.
type parsedKey struct {
	task     Task
	manifest bool
	seq      uint64 // of a manifest
	sum      [sha256.Size]byte
}

// parseKey reads a key of exactly the form this package writes.
func parseKey(key string) (parsedKey, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 5 {
		return parsedKey{}, false
	}
	partition, err := strconv.ParseInt(parts[2], 10, 32)
	if err != nil || partition < 0 || strconv.FormatInt(partition, 10) != parts[2] {
		return parsedKey{}, false
	}
	k := parsedKey{task: Task{parts[0], parts[1], int32(partition)}}
	name := parts[4]
	switch parts[3] {
	case "sst":
	case "manifest":
		k.manifest = true
		seq, rest, ok := strings.Cut(name, "-")
		var number [8]byte
		if !ok || !parseHex(number[:], seq) {
			return parsedKey{}, false
		}
		for _, b := range number {
			k.seq = k.seq<<8 | uint64(b)
		}
		name = rest
	default:
		return parsedKey{}, false
	}
	return k, parseHex(k.sum[:], name)
}

// parseHex reads lower-case hexadecimal digits that fill dst.
func parseHex(dst []byte, s string) bool {
	if len(s) != 2*len(dst) || strings.ToLower(s) != s {
		return false
	}
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

func compareTasks(a, b Task) int {
	return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Partition, b.Partition))
}
