package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
)

// hence is the time of the system's clock in a while.
func hence(d time.Duration) time.Time { return time.Now().Add(d) }

func TestGarbage(t *testing.T) {
	now := time.UnixMilli(1e12)
	manifestOf := func(seq uint64, files ...string) (*Manifest, Ref) {
		m := head(seq)
		for _, f := range files {
			m.Files = append(m.Files, File{Name: f + ".sst", Size: 1, Sum: [32]byte{f[0]}})
		}
		m.Files = append(m.Files, File{Name: "z", Data: []byte{}})
		return &m, Ref{Key: testTask.manifest(seq, encode(t, &m)), Seq: seq}
	}
	file := func(name string) string { return testTask.object([32]byte{name[0]}) }
	m7, r7 := manifestOf(7, "a", "b")
	m8, r8 := manifestOf(8, "b", "c")
	_, r9 := manifestOf(9, "d")
	foreign := "app/other/3/sst/" + strings.Repeat("00", 32)
	all := []string{file("a"), file("b"), file("c"), file("d"), r7.Key, r8.Key, r9.Key}

	for _, c := range []struct {
		name     string
		have     []string
		retained []*Manifest
		refs     []Ref
		age      time.Duration
		want     []string
	}{
		{"what no manifest names", all, []*Manifest{m7, m8}, []Ref{r7, r8}, 2 * Grace, []string{r9.Key, file("d")}},
		{"shared files stay", all, []*Manifest{m8}, []Ref{r8}, 2 * Grace, []string{r7.Key, r9.Key, file("a"), file("d")}},
		{"too young", all, []*Manifest{m8}, []Ref{r8}, Grace, nil},
		{"just old enough", all, []*Manifest{m8}, []Ref{r8}, Grace + 1, []string{r7.Key, r9.Key, file("a"), file("d")}},
		{"from a clock ahead", all, []*Manifest{m8}, []Ref{r8}, -Grace, nil},
		{"nothing retained", all, nil, nil, 2 * Grace, []string{r7.Key, r8.Key, r9.Key, file("a"), file("b"), file("c"), file("d")}},
		{"a manifest that was not read", all, []*Manifest{m8}, []Ref{r7, r8}, 2 * Grace, nil},
		{"another manifest of the commit", all, []*Manifest{m8}, []Ref{{Key: testTask.manifest(8, nil), Seq: 8}}, 2 * Grace, nil},
		{"a manifest more than referred to", all, []*Manifest{m7, m8}, []Ref{r8}, 2 * Grace, []string{r9.Key, file("d")}},
		{"keys of others", []string{"readme.txt", "app/orders/3/x", "app/orders/3/sst/short", "app/orders/03/sst/" + strings.Repeat("00", 32), "x/" + file("a")}, nil, nil, 2 * Grace, nil},
		{"another task in the listing", []string{foreign}, []*Manifest{m8}, []Ref{r8}, 2 * Grace, []string{foreign}},
		{"an empty bucket", nil, []*Manifest{m8}, []Ref{r8}, 2 * Grace, nil},
	} {
		var have []objects.Info
		for _, key := range c.have {
			have = append(have, objects.Info{Key: key, Modified: now.Add(-c.age)})
		}
		if got := Garbage(have, c.retained, c.refs, now, Grace); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCollect(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "one", "2.sst", "two")
	_, m1, _ := mustUpload(t, s, d, 1, nil, nil)
	delete(d.files, "1.sst")
	r2, _, _ := mustUpload(t, s, d, 2, []*Manifest{m1}, nil)

	n, _, err := Collect(t.Context(), s, testTask, []Ref{r2}, hence(0), Grace)
	if n != 0 || err != nil {
		t.Errorf("at once: %d, %v", n, err)
	}
	n, _, err = Collect(t.Context(), s, testTask, []Ref{r2}, hence(2*Grace), Grace)
	if n != 2 || err != nil {
		t.Errorf("later: %d, %v", n, err)
	}
	wantRestored(t, s, r2, d)
	if n, _, err = Collect(t.Context(), s, testTask, []Ref{r2}, hence(2*Grace), Grace); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}

// A collection also tells which files of the retained snapshots the bucket has lost, one that cannot delete anything included;
// putting them again makes the snapshots whole.
func TestCollectLost(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "one", "2.sst", "two", "3.sst", "three")
	r1, m1, _ := mustUpload(t, s, d, 1, nil, nil)
	d.files["4.sst"] = "four"
	r2, m2, _ := mustUpload(t, s, d, 2, []*Manifest{m1}, nil)
	refs := []Ref{r1, r2}
	lose := map[string]string{}
	for _, f := range m2.Files {
		lose[f.Name] = m2.Object(f)
	}
	check(t, s.Delete(t.Context(), lose["1.sst"]))
	check(t, s.Put(t.Context(), lose["4.sst"], objects.Bytes([]byte("fo"))))
	want := []string{lose["1.sst"], lose["4.sst"]}
	slices.Sort(want)
	if n, lost, err := Collect(t.Context(), s, testTask, refs, hence(2*Grace), Grace); n != 0 || err != nil || !slices.Equal(lost, want) {
		t.Errorf("%d, %q, %v, want %q", n, lost, err, want)
	}
	check(t, s.Delete(t.Context(), r1.Key))
	if _, lost, err := Collect(t.Context(), s, testTask, refs, hence(2*Grace), Grace); !errors.Is(err, objects.ErrNotFound) || !slices.Equal(lost, want) {
		t.Errorf("without a manifest: %q, %v", lost, err)
	}
	m2.Files = slices.DeleteFunc(slices.Clone(m2.Files), func(f File) bool { return slices.Contains(want, m2.Object(f)) })
	r3, _, stats := mustUpload(t, s, d, 3, []*Manifest{m2}, nil)
	if stats.Uploaded != 2 {
		t.Errorf("%d files put", stats.Uploaded)
	}
	wantRestored(t, s, r3, d)
	if _, lost, err := Collect(t.Context(), s, testTask, []Ref{r2, r3}, hence(2*Grace), Grace); err != nil || len(lost) > 0 {
		t.Errorf("in the end: %q, %v", lost, err)
	}
}

// While one retained manifest cannot be read, whatever the reason, nothing is deleted.
func TestCollectUnreadable(t *testing.T) {
	broken := errors.New("broken")
	for name, change := range map[string]func(t *testing.T, s objects.Store, r Ref) objects.Store{
		"missing": func(t *testing.T, s objects.Store, r Ref) objects.Store {
			check(t, s.Delete(t.Context(), r.Key))
			return s
		},
		"damaged": func(t *testing.T, s objects.Store, r Ref) objects.Store {
			check(t, s.Put(t.Context(), r.Key, objects.Bytes([]byte("x"))))
			return s
		},
		"unreachable": func(t *testing.T, s objects.Store, r Ref) objects.Store {
			return objects.WithFaults(s, nil, func(op objects.Op) objects.Fault {
				if op.Key == r.Key {
					return objects.Fault{Err: broken}
				}
				return objects.Fault{}
			})
		},
		"unlisted": func(_ *testing.T, s objects.Store, _ Ref) objects.Store {
			return objects.WithFaults(s, nil, func(op objects.Op) objects.Fault {
				if op.Kind == objects.OpList {
					return objects.Fault{Err: broken, Done: true}
				}
				return objects.Fault{}
			})
		},
	} {
		s := objects.NewMem()
		d := newDatabase("1.sst", "one")
		r1, _, _ := mustUpload(t, s, d, 1, nil, nil)
		d.files["1.sst"] = "other"
		r2, _, _ := mustUpload(t, s, d, 2, nil, nil)
		d.files["1.sst"] = "third"
		mustUpload(t, s, d, 3, nil, nil)
		store := change(t, s, r1)
		before := keys(t, s)
		n, _, err := Collect(t.Context(), store, testTask, []Ref{r1, r2}, hence(2*Grace), Grace)
		if n != 0 || err == nil || !slices.Equal(keys(t, s), before) {
			t.Errorf("%s: %d deleted, %v", name, n, err)
		}
	}
}

// A listing that lags behind hides garbage for a while and nothing else.
func TestCollectStaleListing(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "one", "2.sst", "two")
	mustUpload(t, s, d, 1, nil, nil)
	d.files["1.sst"] = "other"
	r2, _, _ := mustUpload(t, s, d, 2, nil, nil)
	stale := objects.WithFaults(s, nil, func(objects.Op) objects.Fault {
		return objects.Fault{Hide: func(key string) bool { return strings.Contains(key, "sst") }}
	})
	n, _, err := Collect(t.Context(), stale, testTask, []Ref{r2}, hence(2*Grace), Grace)
	if n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wantRestored(t, s, r2, d)
	if n, _, err = Collect(t.Context(), s, testTask, []Ref{r2}, hence(2*Grace), Grace); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wantRestored(t, s, r2, d)
}

func TestSweepApp(t *testing.T) {
	s := objects.NewMem()
	task := func(app, sub string, partition int32) (Task, Ref) {
		h := Manifest{App: app, Sub: sub, Partition: partition, Seq: 1}
		r, _, _, err := New(s, Options{}).Upload(t.Context(), newDatabase("1.sst", sub), h, nil, nil)
		check(t, err)
		return h.Task(), r
	}
	known, rKnown := task("app", "known", 0)
	gone, rGone := task("app", "gone", 1)
	saved, rSaved := task("app", "saved", 2)
	lost, rLost := task("app", "lost", 3)
	_, other := task("app-g2", "gone", 1)
	check(t, s.Delete(t.Context(), rLost.Key))
	check(t, s.Put(t.Context(), "app/readme", objects.Bytes(nil)))
	live := func(at Task) ([]Ref, bool) {
		switch at {
		case known:
			return nil, true
		case saved:
			return []Ref{rSaved}, false
		case lost:
			return []Ref{rLost}, false
		case gone:
			return nil, false
		}
		t.Errorf("asked for %v", at)
		return nil, true
	}
	n, err := SweepApp(t.Context(), s, "app", live, hence(Abandoned-time.Hour), Abandoned)
	if n != 0 || err != nil {
		t.Errorf("early: %d, %v", n, err)
	}
	n, err = SweepApp(t.Context(), s, "app", live, hence(Abandoned+time.Hour), Abandoned)
	if n != 2 || !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("%d, %v; want two deleted and an error for the task whose manifest is lost", n, err)
	}
	for _, r := range []Ref{rKnown, rSaved, other} {
		if _, err := restore(t.Context(), s, r); err != nil {
			t.Error(err)
		}
	}
	if _, err := Load(t.Context(), s, rGone); !errors.Is(err, objects.ErrNotFound) {
		t.Error(err)
	}
	refs, err := Find(t.Context(), s, "app/")
	check(t, err)
	if len(refs) != 2 || refs[0].Key != rKnown.Key || refs[1] != (Ref{Key: rSaved.Key, Seq: 1}) {
		t.Errorf("found %+v", refs)
	}
}

// One object put lately keeps all of an unknown task: who put it builds on the older ones.
func TestSweepAppSparesTheActive(t *testing.T) {
	s := objects.NewMem()
	d := newDatabase("1.sst", "one")
	r, _, _ := mustUpload(t, s, d, 1, nil, nil)
	var fresh objects.Info
	check(t, s.List(t.Context(), "", func(i objects.Info) error {
		if i.Key == r.Key {
			fresh = i
		}
		return nil
	}))
	old := objects.Store(aged{s, fresh.Key})
	n, err := SweepApp(t.Context(), old, testTask.App, func(Task) ([]Ref, bool) { return nil, false }, hence(0), Abandoned)
	if n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wantRestored(t, s, r, d)
}

// aged lists all objects but one as put long ago.
type aged struct {
	*objects.Mem
	fresh string
}

func (a aged) List(ctx context.Context, prefix string, fn func(objects.Info) error) error {
	return a.Mem.List(ctx, prefix, func(i objects.Info) error {
		if i.Key != a.fresh {
			i.Modified = i.Modified.Add(-2 * Abandoned)
		}
		return fn(i)
	})
}
