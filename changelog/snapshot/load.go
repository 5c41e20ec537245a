package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/tidemark/tidemark/changelog/objects"
)

// maxManifest bounds what Load reads into memory: some files of 256 KiB and 100 bytes for each of the others.
const maxManifest = 64 << 20

// Load returns the manifest a reference points to. Its bytes are verified against its key. Errors: ErrDamaged,
// objects.ErrNotFound, a *VersionError for one a newer build has written, else those of the store.
func Load(ctx context.Context, store objects.Store, ref Ref) (*Manifest, error) {
	m, err := load(ctx, store, ref)
	if err != nil {
		return nil, fmt.Errorf("snapshot: load %s: %w", ref.Key, err)
	}
	return m, nil
}

func load(ctx context.Context, store objects.Store, ref Ref) (*Manifest, error) {
	key, ok := parseKey(ref.Key)
	if !ok || !key.manifest || key.seq != ref.Seq {
		return nil, fmt.Errorf("%w: not the key of commit %d", ErrDamaged, ref.Seq)
	}
	b, err := fetch(ctx, store, ref.Key)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); sum != key.sum {
		return nil, fmt.Errorf("%w: %d bytes with sha256 %x", ErrDamaged, len(b), sum)
	}
	m, err := Decode(b)
	if err != nil {
		return nil, err
	}
	if m.Task() != key.task || m.Seq != key.seq {
		return nil, fmt.Errorf("%w: it is of %v at commit %d", ErrDamaged, m.Task(), m.Seq)
	}
	return m, nil
}

// fetch returns a whole object, or damage for one too large for a manifest.
func fetch(ctx context.Context, store objects.Store, key string) ([]byte, error) {
	r, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxManifest {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrDamaged, maxManifest)
	}
	return b, nil
}
