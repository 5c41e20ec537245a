package snapshot

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

func TestUploadAndRestore(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("000001.sst", strings.Repeat("one", 1000), "000002.sst", "two", "MANIFEST-000003", "m3", "CURRENT", "", "big.log", strings.Repeat("x", inlineBytes+1))
	r, m, stats := mustUpload(t, s, d, 7, nil, nil)
	wantRestored(t, s, r, d)

	want := Stats{Files: 5, Bytes: m.Bytes(), Uploaded: 3, UploadedBytes: 3000 + 3 + inlineBytes + 1, HashedBytes: m.Bytes(), ManifestBytes: stats.ManifestBytes}
	if stats != want {
		t.Errorf("%+v, want %+v", stats, want)
	}
	if r.Seq != 7 || r.Created != 7000 || r.Bytes != m.Bytes() || r.Kept != Rolling || !strings.HasPrefix(r.Key, "app/orders/3/manifest/0000000000000007-") {
		t.Errorf("%+v", r)
	}
	loaded, err := Load(t.Context(), s, r)
	check(t, err)
	if string(encode(t, loaded)) != string(encode(t, m)) {
		t.Error("the manifest that was returned is not the one that was put")
	}
	if !slices.IsSortedFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("files are not sorted")
	}
	check(t, Verify(t.Context(), s, m, Options{}))
}

// Only what is new is put, only what is unknown is hashed.
func TestUploadIncremental(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "one", "2.sst", "two", "MANIFEST", "m1")
	var memo Memo
	_, first, _ := mustUpload(t, s, d, 1, nil, &memo)

	delete(d.files, "1.sst")
	d.files["3.sst"], d.files["MANIFEST"] = "three", "m2"
	r, second, stats := mustUpload(t, s, d, 2, []*Manifest{first}, &memo)
	if stats.Uploaded != 1 || stats.UploadedBytes != 5 || stats.HashedBytes != 5+2 {
		t.Errorf("%+v", stats)
	}
	wantRestored(t, s, r, d)
	if len(memo.sums) != 2 {
		t.Errorf("%d files remembered, the database has 2", len(memo.sums))
	}

	// Without a memo the sums tell what is there; and nothing new is nothing to put.
	r, _, stats = mustUpload(t, s, d, 3, []*Manifest{first, second}, nil)
	if stats.Uploaded != 0 || stats.HashedBytes != 3+5+2 {
		t.Errorf("%+v", stats)
	}
	wantRestored(t, s, r, d)
}

// A manifest that is not retained may have lost its files: they are put again.
func TestUploadTrustsRetainedOnly(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "one")
	r, _, _ := mustUpload(t, s, d, 1, nil, nil)
	check(t, s.Delete(t.Context(), keys(t, s)...))
	r2, _, stats := mustUpload(t, s, d, 2, nil, nil)
	if stats.Uploaded != 1 {
		t.Errorf("%+v", stats)
	}
	wantRestored(t, s, r2, d)
	if _, err := Load(t.Context(), s, r); !errors.Is(err, objects.ErrNotFound) {
		t.Error(err)
	}
}

// Files of another task have other keys, even with the same content.
func TestUploadForeignTask(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "one")
	foreign := head(1)
	foreign.Partition++
	_, m, _, err := New(s, Options{}).Upload(t.Context(), d, foreign, nil, nil)
	check(t, err)
	r, _, stats := mustUpload(t, s, d, 1, []*Manifest{m}, nil)
	if stats.Uploaded != 1 {
		t.Errorf("%+v", stats)
	}
	n, _, err := Collect(t.Context(), s, m.Task(), nil, hence(2*Grace), Grace)
	check(t, err)
	if n != 2 {
		t.Errorf("%d objects deleted, want those of the other task", n)
	}
	wantRestored(t, s, r, d)
}

// Two files of one content are one object.
func TestUploadEqualFiles(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "same", "2.sst", "same")
	r, _, stats := mustUpload(t, s, d, 1, nil, nil)
	if stats.Uploaded != 1 || len(keys(t, s)) != 2 {
		t.Errorf("%+v, %q", stats, keys(t, s))
	}
	wantRestored(t, s, r, d)
}

func TestUploadRefusals(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		db   Checkpoint
		head Manifest
	}{
		"path":    {newDatabase("../1.sst", "one"), head(1)},
		"no task": {newDatabase("1.sst", "one"), Manifest{Seq: 1}},
		"files":   {&database{fail: broken}, head(1)},
		"open":    {failing{newDatabase("1.sst", "one"), broken}, head(1)},
		"large":   {newDatabase("MANIFEST", strings.Repeat("x", maxManifest)), head(1)},
		"short":   {shrunk{newDatabase("1.sst", "one")}, head(1)},
		"short 2": {shrunk{newDatabase("MANIFEST", "one")}, head(1)},
	} {
		s := objects.NewMem()
		r, m, _, err := New(s, Options{InlineBytes: maxManifest}).Upload(t.Context(), c.db, c.head, nil, nil)
		if err == nil || r != (Ref{}) || m != nil || !strings.HasPrefix(err.Error(), "snapshot: upload ") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if got := keys(t, s); len(got) != 0 {
			t.Errorf("%s: put %q", name, got)
		}
	}
}

// failing cannot open its files, shrunk has less than it lists.
type failing struct {
	*database
	err error
}

func (f failing) Open(string) (io.ReaderAt, io.Closer, error) { return nil, nil, f.err }

type shrunk struct{ *database }

func (s shrunk) Files() ([]LocalFile, error) {
	files, err := s.database.Files()
	for i := range files {
		files[i].Size++
	}
	return files, err
}

// The manifest is put alone and last, whatever the files take.
func TestUploadManifestLast(t *testing.T) {
	mem := objects.NewMem()
	var puts atomic.Int64
	s := objects.WithFaults(mem, nil, func(op objects.Op) objects.Fault {
		n := puts.Add(1)
		if k, ok := parseKey(op.Key); !ok || k.manifest != (n == 9) {
			t.Errorf("put %d is %s", n, op.Key)
		}
		return objects.Fault{}
	})
	d := newDatabase()
	for i := range 8 {
		d.files[strings.Repeat("a", i+1)+".sst"] = strings.Repeat("content", i+1)
	}
	r, _, _, err := New(s, Options{Parallel: 3}).Upload(t.Context(), d, head(1), nil, nil)
	check(t, err)
	wantRestored(t, mem, r, d)
}

// An upload that breaks off at any operation, before or after it took effect, torn or whole, leaves the snapshot before it
// as it was; the next one succeeds, and its restore is exact.
func TestUploadInterrupted(t *testing.T) {
	first := newDatabase("1.sst", "one", "2.sst", "two", "MANIFEST", "m1")
	second := newDatabase("2.sst", "two", "3.sst", "three", "4.sst", "four", "MANIFEST", "m2")
	third := newDatabase("3.sst", "three", "4.sst", "four", "5.sst", "five", "MANIFEST", "m3")
	broken := errors.New("broken off")
	for n := int64(1); n <= 3; n++ { // two files and the manifest
		for name, fault := range map[string]objects.Fault{
			"before":    {Err: broken},
			"after":     {Err: broken, Done: true},
			"torn":      {Err: broken, Done: true, Damage: objects.Cut(2)},
			"cancelled": {},
		} {
			t.Run(name, func(t *testing.T) {
				mem := objects.NewMem()
				var memo Memo
				r1, m1, _ := mustUpload(t, mem, first, 1, nil, &memo)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := objects.WithFaults(mem, nil, func(op objects.Op) objects.Fault {
					if op.N != n {
						return objects.Fault{}
					}
					if name == "cancelled" {
						cancel()
					}
					return fault
				})
				_, _, _, err := New(s, Options{Parallel: 1}).Upload(ctx, second, head(2), []*Manifest{m1}, &memo)
				if !errors.Is(err, broken) && !errors.Is(err, context.Canceled) {
					t.Fatalf("operation %d: %v", n, err)
				}
				wantRestored(t, mem, r1, first)
				r3, _, _ := mustUpload(t, mem, third, 3, []*Manifest{m1}, &memo)
				wantRestored(t, mem, r3, third)
				wantRestored(t, mem, r1, first)

				// What was left behind goes when it is old, and only that.
				_, _, err = Collect(t.Context(), mem, testTask, []Ref{r1, r3}, hence(2*Grace), Grace)
				check(t, err)
				wantRestored(t, mem, r3, third)
				wantRestored(t, mem, r1, first)
				if got := len(keys(t, mem)); got != 2+5 {
					t.Errorf("%d objects left: %q", got, keys(t, mem))
				}
			})
		}
	}
}

// A memo of one database, used for another, is what the package warns of; one that is used as told follows the files.
func TestMemoFollowsSizes(t *testing.T) {
	var memo Memo
	memo.put("1.sst", 3, [32]byte{1})
	if _, ok := memo.get("1.sst", 4); ok {
		t.Error("another size is the same file")
	}
	var none *Memo
	none.put("1.sst", 3, [32]byte{1})
	none.keep(nil)
	if _, ok := none.get("1.sst", 3); ok {
		t.Error("no memo remembers")
	}
	if !maps.Equal(memo.sums, map[string]memoEntry{"1.sst": {3, [32]byte{1}}}) {
		t.Error(memo.sums)
	}
}

// What is read to learn sums is asked for, once per file; the error ends the upload.
func TestUploadPaced(t *testing.T) {
	d := newDatabase("1.sst", strings.Repeat("x", 300_000), "2.sst", "two")
	var taken atomic.Int64
	u := New(objects.NewMem(), Options{Take: func(_ context.Context, n int64) error {
		taken.Add(n)
		return nil
	}})
	memo := new(Memo)
	for range 2 {
		if _, _, _, err := u.Upload(t.Context(), d, head(1), nil, memo); err != nil {
			t.Fatal(err)
		}
		if n := taken.Load(); n != 300_003 {
			t.Errorf("%d bytes taken", n)
		}
	}
	late := errors.New("too late")
	u = New(objects.NewMem(), Options{Take: func(context.Context, int64) error { return late }})
	if _, _, _, err := u.Upload(t.Context(), d, head(2), nil, new(Memo)); !errors.Is(err, late) {
		t.Error(err)
	}
}
