package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Flaw is something wrong with a snapshot.
type Flaw struct {
	Ref  Ref
	File string // the file of the database, empty for the manifest itself
	Err  error  // ErrDamaged, objects.ErrNotFound, or a *VersionError
}

// Inspection is what an inspection has found.
type Inspection struct {
	// Whole is how many snapshots have no flaw, Flawed how many have one.
	Whole, Flawed int
	// Objects is how many objects were looked at, manifests included, Bytes how much of them was read.
	Objects int
	Bytes   int64
	// BadObjects is how many of them are damaged, missing or not to be understood. One that several snapshots share makes
	// a flaw of each.
	BadObjects int
	// Gone is how many snapshots were deleted meanwhile, which is no flaw.
	Gone int
	// Flaws are ordered by commit and then by file.
	Flaws []Flaw
}

// Inspect reads every object that the manifests of a task name, each once, and compares size and SHA-256 with what they say.
// Options.Parallel objects are read at a time. The error is one of the store and ends the inspection: it says nothing about
// the objects.
func Inspect(ctx context.Context, store objects.Store, h *Holding, o Options) (*Inspection, error) {
	if o.Parallel <= 0 {
		o.Parallel = downloadParallel
	}
	in := &inspection{store: store, at: make(map[string]int)}
	for _, f := range h.Found {
		in.add(f)
	}
	if err := parallel(ctx, o.Parallel, len(in.objects), in.read); err != nil {
		return nil, fmt.Errorf("snapshot: inspect %v: %w", h.Task, err)
	}
	out := &Inspection{}
	for _, f := range h.Found {
		if err := in.judge(ctx, f, out); err != nil {
			return nil, fmt.Errorf("snapshot: inspect %v: %w", h.Task, err)
		}
	}
	for _, obj := range in.objects {
		out.Objects++
		out.Bytes += obj.read
	}
	return out, nil
}

// inspection is one Inspect.
type inspection struct {
	store   objects.Store
	objects []*inspected
	at      map[string]int // by key
}

// inspected is one object.
type inspected struct {
	key  string
	m    *Manifest // one that names it
	file File
	read int64
	err  error
	told bool // counted as bad
}

func (in *inspection) add(f Found) {
	if f.Manifest == nil {
		return
	}
	for _, file := range f.Manifest.Files {
		key := f.Manifest.Object(file)
		if _, ok := in.at[key]; ok || file.Data != nil {
			continue
		}
		in.at[key] = len(in.objects)
		in.objects = append(in.objects, &inspected{key: key, m: f.Manifest, file: file})
	}
}

func (in *inspection) read(ctx context.Context, i int) error {
	obj := in.objects[i]
	n := &counter{}
	obj.err = verified(ctx, in.store, obj.key, obj.file, n)
	obj.read = n.bytes
	if obj.err == nil || isFlaw(obj.err) {
		return nil
	}
	return obj.err
}

// isFlaw tells what is wrong with an object from what is wrong with its store.
func isFlaw(err error) bool {
	var version *VersionError
	return errors.Is(err, ErrDamaged) || errors.Is(err, objects.ErrNotFound) || errors.As(err, &version)
}

// judge adds what was found about one snapshot.
func (in *inspection) judge(ctx context.Context, f Found, out *Inspection) error {
	if f.Err != nil {
		out.Objects++
		out.BadObjects++
		out.Flawed++
		out.Flaws = append(out.Flaws, Flaw{f.Ref, "", f.Err})
		return nil
	}
	var flaws []Flaw
	var bad []*inspected
	missing := false
	for _, file := range f.Manifest.Files {
		if file.Data != nil {
			continue
		}
		obj := in.objects[in.at[f.Manifest.Object(file)]]
		err := obj.err
		if err == nil && file.Size != obj.file.Size {
			err = fmt.Errorf("%w: %d bytes, want %d", ErrDamaged, obj.file.Size, file.Size)
		}
		if err == nil {
			continue
		}
		flaws, bad = append(flaws, Flaw{f.Ref, file.Name, err}), append(bad, obj)
		missing = missing || errors.Is(err, objects.ErrNotFound)
	}
	if missing {
		// A collection deletes the manifest first.
		_, err := Load(ctx, in.store, f.Ref)
		if errors.Is(err, objects.ErrNotFound) {
			out.Gone++
			return nil
		}
		if err != nil && !isFlaw(err) {
			return err
		}
	}
	out.Objects++
	encoded, err := f.Manifest.Append(nil)
	if err != nil {
		return err
	}
	out.Bytes += int64(len(encoded))
	if len(flaws) == 0 {
		out.Whole++
		return nil
	}
	for _, obj := range bad {
		if !obj.told {
			obj.told = true
			out.BadObjects++
		}
	}
	out.Flawed++
	out.Flaws = slices.Concat(out.Flaws, flaws)
	return nil
}

// counter counts what is written to it.
type counter struct{ bytes int64 }

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return len(b), nil
}
