package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/store"
)

// Pebble takes a damaged record in its manifest for the torn end of a crash: it opens an earlier state, or an empty one,
// says nothing, and removes the tables it no longer knows. Restoring from that state is still right, but damage should be
// seen. So a clean Close leaves a seal, a file with the sums of the manifests and options, and Open compares it.
//
//	tidemark-seal 1
//	MANIFEST-000001 4711 0badcafe      name, length, crc32c, by name
//	OPTIONS-000003 2048 deadbeef
//	end 12345678                       crc32c of the lines before
//
// Open removes the seal, durably, before Pebble changes the first byte. A seal that does not end well is the remains of
// a crash and says nothing.
const (
	sealName  = "tidemark-seal"
	sealTitle = "tidemark-seal 1\n"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums lists what the seal covers.
func (d *DB) sums() ([]byte, error) {
	names, err := d.gate.List(d.dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	out := []byte(sealTitle)
	fs := &FS{fs: d.gate}
	for _, name := range names {
		if !strings.HasPrefix(name, "MANIFEST-") && !strings.HasPrefix(name, "OPTIONS-") {
			continue
		}
		b, err := fs.ReadFile(d.gate.PathJoin(d.dir, name))
		if err != nil {
			return nil, err
		}
		out = fmt.Appendf(out, "%s %d %08x\n", name, len(b), crc32.Checksum(b, castagnoli))
	}
	return out, nil
}

func sealEnd(sums []byte) string { return fmt.Sprintf("end %08x\n", crc32.Checksum(sums, castagnoli)) }

// writeSeal is called after Pebble has closed the files.
func (d *DB) writeSeal() error {
	sums, err := d.sums()
	if err != nil {
		return err
	}
	path := d.gate.PathJoin(d.dir, sealName)
	if err := (&FS{fs: d.gate}).WriteFile(path, append(sums, sealEnd(sums)...)); err != nil {
		return err
	}
	return syncDir(d.gate, d.dir)
}

// breakSeal compares the seal, if there is one, and removes it. A seal that does not match stays.
func (d *DB) breakSeal() error {
	path := d.gate.PathJoin(d.dir, sealName)
	seal, err := (&FS{fs: d.gate}).ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	sums, err := d.sums()
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	if at := bytes.LastIndex(seal, []byte("end ")); at >= 0 && string(seal[at:]) == sealEnd(seal[:at]) &&
		!bytes.Equal(seal[:at], sums) {
		return fmt.Errorf("%w: files have changed since the database was closed: %q, sealed as %q",
			store.ErrCorrupt, sums, seal[:at])
	}
	if err := d.gate.Remove(path); err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	if err := syncDir(d.gate, d.dir); err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	return nil
}
