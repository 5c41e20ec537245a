package snapshot

import (
	"context"
	"fmt"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Find lists the manifests below a prefix, such as "<app>/", as references without a time and a size, ascending by key. It is
// for people who look into a bucket: what a task may restore from stands in its progress record and nowhere else, and a
// listing also shows what was never published.
func Find(ctx context.Context, store objects.Store, prefix string) ([]Ref, error) {
	var refs []Ref
	err := store.List(ctx, prefix, func(i objects.Info) error {
		if k, ok := parseKey(i.Key); ok && k.manifest {
			refs = append(refs, Ref{Key: i.Key, Seq: k.seq})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: find: %w", err)
	}
	return refs, nil
}
