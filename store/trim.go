package store

import (
	"encoding/binary"
	"math"
)

// Trimmed says whether rows of such a store leave in the order of their groups, which are the ends of windows or the
// buckets of a deduplication, and without a tombstone. What a changelog holds of groups that have expired is of no use.
func (k Kind) Trimmed() bool { return k == Window || k == Dedup }

// Group returns the group of a row of a trimmed store by its local key, or the lowest group that a floor leaves alone.
func (k Kind) Group(key []byte) int64 {
	switch {
	case k == Window && len(key) >= 8:
		return timeAt(key)
	case k == Dedup && len(key) >= 4:
		return int64(binary.BigEndian.Uint32(key))
	}
	return math.MinInt64
}
