package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark/tidemark/internal/wire"
)

// Why a snapshot is kept.
const (
	Rolling   byte = 0 // as one of the last few
	Hydrating byte = 1 // a database still reads files of it
	Savepoint byte = 2 // a savepoint names it
)

// Ref is the pointer that makes a snapshot count. The progress record of a task lists those it retains.
type Ref struct {
	Key     string // of the manifest
	Seq     uint64 // the commit it holds
	Created int64  // wall clock, ms
	Bytes   int64  // of all its files
	Kept    byte   // Rolling, Hydrating or Savepoint
}

// refsVersion is the layout of a list of references.
const refsVersion = 1

// AppendRefs appends the list that a section of a progress record carries; the checksum of the record covers it.
//
//	+---------+----------+----------------------------------------------------------+
//	| version | uv count | str key, uv seq, sv created, uv bytes, 1 byte why it is  |
//	| 1 byte  |          | kept; ...                                                |
//	+---------+----------+----------------------------------------------------------+
//
// Letters as in Manifest.Append. Keys must be those of manifests.
func AppendRefs(dst []byte, refs []Ref) ([]byte, error) {
	start := len(dst)
	dst = wire.AppendUvarint(append(dst, refsVersion), uint64(len(refs)))
	for _, r := range refs {
		if err := r.check(); err != nil {
			return dst[:start], fmt.Errorf("snapshot: encode references: %w", err)
		}
		dst = wire.AppendString(dst, r.Key)
		dst = wire.AppendUvarint(dst, r.Seq)
		dst = wire.AppendVarint(dst, r.Created)
		dst = wire.AppendUvarint(dst, uint64(r.Bytes))
		dst = append(dst, r.Kept)
	}
	return dst, nil
}

// DecodeRefs parses the list of a progress record; no bytes are no references. The error is ErrDamaged or a *VersionError.
func DecodeRefs(b []byte) ([]Ref, error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := wire.NewReader(b)
	if v := int(r.Byte()); v != refsVersion {
		return nil, &VersionError{"references", v, refsVersion, refsVersion}
	}
	var refs []Ref
	for range r.Count(5) {
		ref := Ref{Key: r.String(), Seq: r.Uvarint(), Created: r.Varint(), Bytes: natural(r), Kept: r.Byte()}
		if err := ref.check(); r.Err() == nil && err != nil {
			return nil, fmt.Errorf("snapshot: decode references: %w: %v", ErrDamaged, err)
		}
		refs = append(refs, ref)
	}
	if err := r.Err(); err != nil || r.Len() != 0 {
		return nil, fmt.Errorf("snapshot: decode references: %w: %d bytes left, %v", ErrDamaged, r.Len(), err)
	}
	return refs, nil
}

func (r Ref) check() error {
	k, ok := parseKey(r.Key)
	if !ok || !k.manifest || k.seq != r.Seq {
		return fmt.Errorf("%q is not the manifest of commit %d", r.Key, r.Seq)
	}
	if r.Bytes < 0 || r.Kept > Savepoint {
		return fmt.Errorf("%s: %d bytes, kept as %d", r.Key, r.Bytes, r.Kept)
	}
	return nil
}

// Retain returns what a progress record lists after a new snapshot, ascending by commit, and what it lists no longer: of
// those that roll, the new one included, the last keep stay, at least one; those that hydrate or belong to a savepoint stay
// in any case. The new one replaces an entry of the same key.
func Retain(refs []Ref, newest Ref, keep int) (kept, dropped []Ref) {
	all := slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return r.Key == newest.Key })
	all = append(all, newest)
	slices.SortStableFunc(all, func(a, b Ref) int { return cmp.Compare(a.Seq, b.Seq) })
	rolling := 0
	for _, r := range slices.Backward(all) {
		if r.Kept == Rolling {
			rolling++
			if rolling > max(keep, 1) {
				dropped = append(dropped, r)
				continue
			}
		}
		kept = append(kept, r)
	}
	slices.Reverse(kept)
	slices.Reverse(dropped)
	return kept, dropped
}
