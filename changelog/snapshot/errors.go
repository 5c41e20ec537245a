package snapshot

import (
	"errors"
	"fmt"
)

// ErrDamaged reports a manifest, a file or a list of references whose bytes are not those that were written. Test with
// errors.Is. What is missing altogether is objects.ErrNotFound.
var ErrDamaged = errors.New("damaged")

// VersionError reports a format that is newer, or older, than this build reads.
type VersionError struct {
	Format   string // "manifest", "references"
	Have     int    // the version found
	Min, Max int    // the versions this build understands
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("snapshot: format version %d of the %s, this build understands %d to %d", e.Have, e.Format, e.Min, e.Max)
}
