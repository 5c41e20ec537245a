package snapshot

import (
	"errors"
	"maps"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

// O-SAME-NAME: an owner dies after it has put its 000005.sst; the next one makes another file of that name.
func TestOSameName(t *testing.T) {
	s := objects.NewMem()
	a := newDatabase("000004.sst", "shared", "000005.sst", "content A")
	dying := objects.WithFaults(s, nil, func(op objects.Op) objects.Fault {
		if k, _ := parseKey(op.Key); k.manifest {
			return objects.Fault{Err: errCrash}
		}
		return objects.Fault{}
	})
	if _, _, _, err := New(dying, Options{}).Upload(t.Context(), a, head(1), nil, &Memo{}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	b := newDatabase("000004.sst", "shared", "000005.sst", "content B")
	r, m, _ := mustUpload(t, s, b, 1, nil, &Memo{})
	wantRestored(t, s, r, b)

	// The same with a snapshot of the first that is retained: the name is in its manifest.
	rA, mA, _ := mustUpload(t, s, a, 2, []*Manifest{m}, &Memo{})
	rB, _, stats := mustUpload(t, s, b, 3, []*Manifest{m, mA}, &Memo{})
	if stats.Uploaded != 0 {
		t.Errorf("%+v", stats)
	}
	wantRestored(t, s, rA, a)
	wantRestored(t, s, rB, b)
	rC, _, _ := mustUpload(t, s, newDatabase("000005.sst", "content C"), 4, []*Manifest{mA}, &Memo{})
	wantRestored(t, s, rC, newDatabase("000005.sst", "content C"))
}

// O-PARTIAL: an upload of five files broken off behind the third, before the manifest, and with a torn manifest. What counts is
// the snapshot before it, the leftovers go later, and never those of an upload that runs.
func TestOPartial(t *testing.T) {
	for name, c := range map[string]struct {
		at    int64
		fault objects.Fault
	}{
		"after 3 of 5 files":  {4, objects.Fault{Err: errCrash}},
		"before the manifest": {6, objects.Fault{Err: errCrash}},
		"manifest cut off":    {6, objects.Fault{Err: errCrash, Done: true, Damage: objects.Cut(40)}},
	} {
		s := objects.NewMem()
		before := newDatabase("0.sst", "zero")
		r, m, _ := mustUpload(t, s, before, 1, nil, nil)
		after := newDatabase("1.sst", "1", "2.sst", "2", "3.sst", "3", "4.sst", "4", "5.sst", "5")
		dying := objects.WithFaults(s, nil, func(op objects.Op) objects.Fault {
			if op.N == c.at {
				return c.fault
			}
			return objects.Fault{}
		})
		_, _, _, err := New(dying, Options{Parallel: 1}).Upload(t.Context(), after, head(2), []*Manifest{m}, nil)
		if !errors.Is(err, errCrash) {
			t.Fatalf("%s: %v", name, err)
		}
		wantRestored(t, s, r, before)
		left := len(keys(t, s))
		if n, _, err := Collect(t.Context(), s, testTask, []Ref{r}, hence(0), Grace); n != 0 || err != nil {
			t.Errorf("%s: %d of a running upload deleted, %v", name, n, err)
		}
		n, _, err := Collect(t.Context(), s, testTask, []Ref{r}, hence(2*Grace), Grace)
		if n != left-2 || err != nil {
			t.Errorf("%s: %d of %d leftovers deleted, %v", name, n, left-2, err)
		}
		wantRestored(t, s, r, before)
	}
}

// O-FALLBACK: of three snapshots the newest has a truncated file. That shows before anything of it counts, the next one is
// whole, and with all of them damaged none is used.
func TestOFallback(t *testing.T) {
	s := objects.NewMem()
	var refs []Ref
	var manifests []*Manifest
	var dbs []*database
	for seq := range uint64(3) {
		d := newDatabase("1.sst", "shared by all", "2.sst", "of 7", "3.sst", "of 7 and 8")
		if seq > 0 {
			delete(d.files, "2.sst")
			d.files["4.sst"] = "of 8 and 9"
		}
		if seq > 1 {
			delete(d.files, "3.sst")
			d.files["5.sst"] = "only of 9"
		}
		r, m, _ := mustUpload(t, s, d, 7+seq, manifests, nil)
		refs, manifests, dbs = append(refs, r), append(manifests, m), append(dbs, d)
	}
	newest := func() (int, []error) {
		var errs []error
		for i := len(refs) - 1; i >= 0; i-- {
			back, err := restore(t.Context(), s, refs[i])
			if err == nil {
				if !maps.Equal(back.files, dbs[i].files) {
					t.Errorf("snapshot %d is wrong", refs[i].Seq)
				}
				return int(refs[i].Seq), errs
			}
			errs = append(errs, err)
		}
		return 0, errs
	}
	truncate := func(m *Manifest, name string) {
		for _, f := range m.Files {
			if f.Name == name {
				b, err := fetch(t.Context(), s, m.Object(f))
				check(t, err)
				check(t, s.Put(t.Context(), m.Object(f), objects.Bytes(b[:len(b)-1])))
			}
		}
	}
	for _, c := range []struct {
		of   *Manifest
		file string
		want int
	}{{manifests[2], "5.sst", 8}, {manifests[1], "3.sst", 0}} {
		truncate(c.of, c.file)
		got, errs := newest()
		if got != c.want {
			t.Errorf("after %s: snapshot %d, want %d", c.file, got, c.want)
		}
		for _, err := range errs {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
		}
	}

	// A later snapshot of the same content must not build on what is damaged: it is given those manifests only that were whole.
	r, _, _ := mustUpload(t, s, dbs[2], 10, nil, nil)
	wantRestored(t, s, r, dbs[2])
}

// O-RESTORED-FROM: the snapshot a run started from belongs to a savepoint. Four more share its file, the last three are kept.
func TestORestoredFrom(t *testing.T) {
	s := objects.NewMem()
	start := newDatabase("1.sst", "s1")
	r, m, _ := mustUpload(t, s, start, 1, nil, nil)
	r.Kept = Savepoint
	refs, manifests := []Ref{r}, []*Manifest{m}
	d := newDatabase("1.sst", "s1")
	for seq := range uint64(4) {
		d.files["2.sst"] = string(rune('a' + seq))
		next, m, _ := mustUpload(t, s, d, 2+seq, manifests, nil)
		refs, _ = Retain(refs, next, 3)
		manifests = append(manifests, m)
	}
	collect := func() {
		t.Helper()
		_, _, err := Collect(t.Context(), s, testTask, refs, hence(2*Grace), Grace)
		check(t, err)
	}
	collect()
	if len(refs) != 4 {
		t.Fatalf("%d are retained", len(refs))
	}
	wantRestored(t, s, r, start)

	// Released, and with its file in use by none of the others.
	refs[0].Kept = Rolling
	last, _, _ := mustUpload(t, s, newDatabase("3.sst", "new"), 6, manifests, nil)
	refs, _ = Retain(refs, last, 3)
	collect()
	if _, err := Load(t.Context(), s, r); !errors.Is(err, objects.ErrNotFound) {
		t.Error(err)
	}
	for _, kept := range refs {
		if _, err := restore(t.Context(), s, kept); err != nil {
			t.Error(err) // two of them still share the file
		}
	}
	refs, _ = Retain(refs, last, 1)
	collect()
	if got := len(keys(t, s)); got != 2 {
		t.Errorf("%d objects are left of one snapshot with one file", got)
	}
	wantRestored(t, s, last, newDatabase("3.sst", "new"))
}
