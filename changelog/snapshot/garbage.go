package snapshot

import (
	"maps"
	"slices"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Grace is how old an object must be before it may count as garbage: longer than any upload takes from its first file to the
// commit that publishes it, clocks that disagree included.
const Grace = time.Hour

// Lost returns the keys of the files of manifests that a listing does not show, or shows with another size: somebody has
// deleted them, or what was stored is not what was put. Uploads must not count on them any more; putting them once more makes
// every snapshot whole that needs them. A listing that lags behind only makes more to upload.
func Lost(have []objects.Info, manifests []*Manifest) []string {
	sizes := make(map[string]int64, len(have))
	for _, o := range have {
		sizes[o.Key] = o.Size
	}
	lost := make(map[string]bool)
	for _, m := range manifests {
		for _, f := range m.Files {
			if f.Data != nil {
				continue
			}
			if size, ok := sizes[m.Object(f)]; !ok || size != f.Size {
				lost[m.Object(f)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lost))
}

// Garbage returns the keys of a listing that nothing needs: in none of the retained manifests, and put longer ago than
// grace. Manifests come first, so that a deletion that is broken off leaves none without its files. Objects whose keys are not
// of this package are left alone.
//
// The manifests must be all those that refs name; while one is lacking, nothing is garbage.
func Garbage(have []objects.Info, retained []*Manifest, refs []Ref, now time.Time, grace time.Duration) []string {
	live := make(map[string]bool)
	for _, m := range retained {
		encoded, err := m.Append(nil)
		if err != nil {
			return nil
		}
		live[m.Task().manifest(m.Seq, encoded)] = true
		for _, f := range m.Files {
			if f.Data == nil {
				live[m.Object(f)] = true
			}
		}
	}
	for _, r := range refs {
		if !live[r.Key] {
			return nil
		}
	}
	var manifests, files []string
	for _, o := range have {
		k, ok := parseKey(o.Key)
		if !ok || live[o.Key] || now.Sub(o.Modified) <= grace {
			continue
		}
		if k.manifest {
			manifests = append(manifests, o.Key)
		} else {
			files = append(files, o.Key)
		}
	}
	return slices.Concat(manifests, files)
}
