package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

// surveyed is a store with three snapshots of one task that share files, and one of another task.
func surveyed(t *testing.T) (s *objects.Mem, refs []Ref, manifests []*Manifest) {
	t.Helper()
	s = objects.NewMem()
	d := newDatabase("1.sst", "shared by all", "2.sst", "of 7", "MANIFEST", "inline 7")
	for seq := uint64(7); seq < 10; seq++ {
		r, m, _ := mustUpload(t, s, d, seq, manifests, nil)
		refs, manifests = append(refs, r), append(manifests, m)
		delete(d.files, fmt.Sprintf("%d.sst", seq-5))
		d.files[fmt.Sprintf("%d.sst", seq-4)] = fmt.Sprintf("of %d", seq+1)
		d.files["9.sst"] = "of 8 and 9"
	}
	other := Manifest{App: testTask.App, Sub: testTask.Sub, Partition: 12, Seq: 1}
	_, _, _, err := New(s, Options{}).Upload(t.Context(), newDatabase("1.sst", "x"), other, nil, nil)
	check(t, err)
	check(t, s.Put(t.Context(), "app/notes.txt", objects.Bytes([]byte("not ours"))))
	return s, refs, manifests
}

func one(t *testing.T, s objects.Store) *Holding {
	t.Helper()
	all, err := Survey(t.Context(), s, testTask.App)
	check(t, err)
	if len(all) == 0 || all[0].Task != testTask {
		t.Fatalf("%+v", all)
	}
	return all[0]
}

func TestSurvey(t *testing.T) {
	s, refs, manifests := surveyed(t)
	all, err := Survey(t.Context(), s, "app")
	check(t, err)
	if len(all) != 2 || all[0].Task != testTask || all[1].Task.Partition != 12 || len(all[1].Found) != 1 {
		t.Fatalf("%+v", all)
	}
	h := all[0]
	if len(h.Found) != 3 || h.Objects != 3+5 || h.Orphans != 0 {
		t.Errorf("%+v", h)
	}
	for i, f := range h.Found {
		if f.Ref != refs[i] || f.Err != nil || !reflect.DeepEqual(f.Manifest.Files, manifests[i].Files) {
			t.Errorf("%d: %+v, want %+v", i, f, refs[i])
		}
	}
	all8 := int64(len("shared by all"))
	want := [][]Share{
		{{refs[1], 1, all8}, {refs[2], 1, all8}},
		{{refs[0], 1, all8}, {refs[2], 2, all8 + int64(len("of 8 and 9"))}},
		{{refs[0], 1, all8}, {refs[1], 2, all8 + int64(len("of 8 and 9"))}},
	}
	for i := range h.Found {
		if got := h.Shares(i); !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%d shares %+v, want %+v", i, got, want[i])
		}
	}
	if none, err := Survey(t.Context(), s, "ap"); err != nil || len(none) != 0 {
		t.Errorf("of another app: %v, %v", none, err)
	}

	// Without the first manifest, what only that names is nobody's.
	check(t, s.Delete(t.Context(), refs[0].Key))
	h = one(t, s)
	if len(h.Found) != 2 || h.Orphans != 1 || h.OrphanBytes != int64(len("of 7")) {
		t.Errorf("%+v", h)
	}
	// One that cannot be read names nothing.
	check(t, s.Put(t.Context(), refs[1].Key, objects.Bytes([]byte("x"))))
	h = one(t, s)
	if f := h.Found[0]; !errors.Is(f.Err, ErrDamaged) || f.Seq != 8 || f.Manifest != nil || h.Orphans != 2 || h.Shares(0) != nil || h.Shares(1) != nil {
		t.Errorf("%+v", h)
	}
}

// What is deleted between the listing and the look is left out; a store that fails is no damage.
func TestSurveyMeanwhile(t *testing.T) {
	s, refs, _ := surveyed(t)
	fails := errors.New("503")
	for _, c := range []struct {
		err  error
		want error
	}{{objects.ErrNotFound, nil}, {fails, fails}} {
		store := objects.WithFaults(s, nil, func(op objects.Op) objects.Fault {
			if op.Kind == objects.OpGet && op.Key == refs[1].Key {
				return objects.Fault{Err: c.err}
			}
			return objects.Fault{}
		})
		all, err := Survey(t.Context(), store, "app")
		if !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
		if c.want == nil && (len(all[0].Found) != 2 || all[0].Objects != 2+5) {
			t.Errorf("%+v", all[0])
		}
	}
	down := objects.WithFaults(s, nil, func(objects.Op) objects.Fault { return objects.Fault{Err: fails} })
	if _, err := Survey(t.Context(), down, "app"); !errors.Is(err, fails) {
		t.Error(err)
	}
}

func flaws(in *Inspection) (out []string) {
	for _, f := range in.Flaws {
		what := "damaged"
		var version *VersionError
		switch {
		case errors.Is(f.Err, objects.ErrNotFound):
			what = "missing"
		case errors.As(f.Err, &version):
			what = "version"
		}
		out = append(out, fmt.Sprintf("%d %s %s", f.Ref.Seq, f.File, what))
	}
	return out
}

func TestInspect(t *testing.T) {
	type change func(t *testing.T, s *objects.Mem, refs []Ref, m []*Manifest)
	file := func(at int, name string, with func([]byte) []byte) change {
		return func(t *testing.T, s *objects.Mem, _ []Ref, m []*Manifest) {
			for _, f := range m[at].Files {
				if f.Name == name {
					b, err := fetch(t.Context(), s, m[at].Object(f))
					check(t, err)
					if b = with(b); b == nil {
						check(t, s.Delete(t.Context(), m[at].Object(f)))
						return
					}
					check(t, s.Put(t.Context(), m[at].Object(f), objects.Bytes(b)))
				}
			}
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for _, c := range []struct {
		name   string
		change change
		flaws  []string
		bad    int
	}{
		{"whole", func(*testing.T, *objects.Mem, []Ref, []*Manifest) {}, nil, 0},
		{"flipped", file(0, "2.sst", flip), []string{"7 2.sst damaged"}, 1},
		{"truncated", file(0, "2.sst", func(b []byte) []byte { return b[:1] }), []string{"7 2.sst damaged"}, 1},
		{"empty", file(0, "2.sst", func(b []byte) []byte { return b[:0] }), []string{"7 2.sst damaged"}, 1},
		{"longer", file(0, "2.sst", func(b []byte) []byte { return append(b, 0) }), []string{"7 2.sst damaged"}, 1},
		{"shared", file(2, "1.sst", flip), []string{"7 1.sst damaged", "8 1.sst damaged", "9 1.sst damaged"}, 1},
		{"gone", file(1, "9.sst", func([]byte) []byte { return nil }), []string{"8 9.sst missing", "9 9.sst missing"}, 1},
		{"manifest", func(t *testing.T, s *objects.Mem, refs []Ref, _ []*Manifest) {
			check(t, s.Put(t.Context(), refs[1].Key, objects.Bytes([]byte("x"))))
		}, []string{"8  damaged"}, 1},
		{"a later build's", func(t *testing.T, s *objects.Mem, _ []Ref, m []*Manifest) {
			b := encode(t, m[0])
			b[0]++
			b = binary.BigEndian.AppendUint32(b[:len(b)-4], checksum(b[:len(b)-4]))
			check(t, s.Put(t.Context(), testTask.manifest(7, b), objects.Bytes(b)))
		}, []string{"7  version"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, refs, manifests := surveyed(t)
			c.change(t, s, refs, manifests)
			h := one(t, s)
			in, err := Inspect(t.Context(), s, h, Options{})
			check(t, err)
			if got := flaws(in); !reflect.DeepEqual(got, c.flaws) || in.BadObjects != c.bad {
				t.Errorf("%q, %d objects; want %q, %d", got, in.BadObjects, c.flaws, c.bad)
			}
			if in.Whole+in.Flawed != len(h.Found) || in.Gone != 0 || in.Objects < 5 {
				t.Errorf("%+v", in)
			}
			if c.flaws == nil && (in.Objects != h.Objects || in.Bytes != h.Bytes) {
				t.Errorf("read %d objects of %d bytes, there are %d of %d", in.Objects, in.Bytes, h.Objects, h.Bytes)
			}
		})
	}
}

// A snapshot that a running app collects is no flaw, and an object store that fails says nothing about its objects.
func TestInspectMeanwhile(t *testing.T) {
	s, refs, manifests := surveyed(t)
	h := one(t, s)
	gone := []string{refs[0].Key}
	for _, f := range manifests[0].Files {
		if f.Name == "2.sst" {
			gone = append(gone, manifests[0].Object(f))
		}
	}
	check(t, s.Delete(t.Context(), gone...))
	in, err := Inspect(t.Context(), s, h, Options{})
	check(t, err)
	if in.Gone != 1 || in.Whole != 2 || in.Flawed != 0 || len(in.Flaws) != 0 || in.BadObjects != 0 {
		t.Errorf("%+v", in)
	}
	fails := errors.New("503")
	for _, part := range []string{"/sst/", "/manifest/"} {
		store := unreadable{s, part, fails}
		if _, err := Inspect(t.Context(), store, h, Options{Parallel: 1}); !errors.Is(err, fails) {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// unreadable cannot read some objects.
type unreadable struct {
	*objects.Mem
	part string
	err  error
}

func (f unreadable) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if strings.Contains(key, f.part) {
		return nil, f.err
	}
	return f.Mem.Get(ctx, key, offset, length)
}
