package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

func seal(t *testing.T, s *State) (out []Change) {
	t.Helper()
	if err := s.Seal(func(c Change) error { out = append(out, c); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit([]byte("p"), 0); err != nil {
		t.Fatal(err)
	}
	return out
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// D-TTL-SAME-FLUSH: a row refreshed and swept in one commit stays, index and data agree.
func TestTTLSameFlush(t *testing.T) {
	for _, until := range []int64{21, 10} { // the variant refreshes with the same stamp
		s := openWith(t, NewMem(), Spec{ID: "ttl", Kind: Expiring, Changelog: true})
		v := must[*ExpiringView[string]](t)(ExpiringViewOf(s, "ttl", codec.String()))
		pop := func(now int64) string {
			k, ok, err := v.PopExpired(now, now)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(string(k), ok)
		}
		if err := v.Put([]byte("k"), "1", 0, 10); err != nil {
			t.Fatal(err)
		}
		seal(t, s)
		if err := v.Put([]byte("k"), "2", 11, until); err != nil {
			t.Fatal(err)
		}
		swept := pop(11)
		changes := seal(t, s)
		if until == 10 {
			if swept != "ktrue" || len(changes) != 1 || changes[0].Value != nil {
				t.Errorf("same stamp: swept %s, changes %v", swept, changes)
			}
			continue
		}
		if swept != "false" || len(changes) != 1 || string(changes[0].Value) != "2" || binary.BigEndian.Uint64(changes[0].Header) != 21 {
			t.Errorf("swept %s, changes %v", swept, changes)
		}
		if val, ok, err := v.Get([]byte("k"), 20); val != "2" || !ok || err != nil {
			t.Errorf("at 20: %q %v %v", val, ok, err)
		}
		if _, ok, _ := v.Get([]byte("k"), 21); ok {
			t.Error("visible at 21")
		}
		if got := pop(20) + pop(30) + pop(30); got != "falsektruefalse" {
			t.Errorf("pops: %s", got)
		}
	}
}

// D-RETENTION-READ: an expired window is found by neither get nor scan at once, and its rows leave the DB with the next
// persist.
func TestRetentionRead(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "w", Kind: Window, Changelog: true})
	w := must[*WindowView[int64]](t)(WindowViewOf(s, "w", codec.Int64()))
	put := func(end int64) {
		w.Set(must[*Row[int64]](t)(w.Row(end, []byte("k"))), 1, end-1)
	}
	put(10)
	put(110)
	seal(t, s)
	if err := s.Persist(0, true); err != nil {
		t.Fatal(err)
	}
	w.Expire(70)
	if _, ok, err := w.Get(10, []byte("k")); ok || err != nil {
		t.Errorf("get: %v %v", ok, err)
	}
	if _, err := w.Row(10, []byte("k")); err != ErrExpired {
		t.Errorf("row: %v", err)
	}
	if got := w.Ends(nil, 0, 1000); !slices.Equal(got, []int64{110}) {
		t.Errorf("ends: %d", got)
	}
	c := must[*Cursor[int64]](t)(w.ScanEnd(10))
	if c.Next() || c.Close() != nil {
		t.Error("scan shows a row")
	}
	if changes := seal(t, s); len(changes) != 0 {
		t.Errorf("changes: %v", changes)
	}
	if err := s.Persist(0, true); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := s.Rows(0, func(_, _ []byte) { n++ }); err != nil || n != 1 {
		t.Errorf("%d rows in the DB, want 1, %v", n, err)
	}
	it := must[Iterator](t)(s.db.Scan(appendKey(nil, s.numbers[0], nil), appendKey(nil, s.numbers[0]+1, nil)))
	for n = 0; it.Next(); n++ {
	}
	if err := it.Close(); err != nil || n != 1 {
		t.Errorf("%d rows in the DB, want 1, %v", n, err)
	}
	// What has expired stays so in the next life of the state.
	w = must[*WindowView[int64]](t)(WindowViewOf(openWith(t, s.db, Spec{ID: "w", Kind: Window, Changelog: true}), "w", codec.Int64()))
	if _, err := w.Row(10, []byte("k")); err != ErrExpired {
		t.Errorf("row after a restart: %v", err)
	}
}

// D-DEDUP-GROWTH: a million ids over ten hours with a time to live of one: the live ones stay bounded.
func TestDedupGrowth(t *testing.T) {
	s, err := Open(NewMem(), []Spec{{ID: "d", Kind: Dedup, Changelog: true}}, Options{ViewBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	d := must[*DedupView](t)(DedupViewOf(s, "d"))
	const ids, hours = 100_000, 10
	const perMinute = ids / hours / 60
	var hash [16]byte
	for minute := range uint32(hours * 60) {
		for range perMinute {
			binary.BigEndian.PutUint64(hash[:], binary.BigEndian.Uint64(hash[:])+1)
			if added, err := d.Add(minute, &hash, 0); !added || err != nil {
				t.Fatal(added, err)
			}
		}
		if minute > 60 {
			d.Expire(minute - 60)
		}
		if minute%30 != 29 {
			continue
		}
		seal(t, s)
		if err := s.Persist(0, true); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := s.Rows(0, func(_, _ []byte) { n++ }); err != nil {
			t.Fatal(err)
		}
		if n > ids/hours*11/10 {
			t.Fatalf("%d live ids after %d minutes", n, minute)
		}
	}
	if s.rowBytes > 5<<20 {
		t.Errorf("%d bytes in the view", s.rowBytes)
	}
}

// D-TTL-RENEW at store level: an id is good again once its bucket has gone.
func TestDedupRenew(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "d", Kind: Dedup, Changelog: true})
	d := must[*DedupView](t)(DedupViewOf(s, "d"))
	var got []bool
	for _, at := range []uint32{0, 0, 1} {
		d.Expire(at)
		got = append(got, must[bool](t)(d.Add(at, &[16]byte{1}, 0)))
	}
	if fmt.Sprint(got) != "[true false true]" {
		t.Errorf("added: %v", got)
	}
}

// W-END-READBACK at store level: the end of a window is the same after the changelog and the DB, also where windows
// differ in length.
func TestWindowEndReadback(t *testing.T) {
	ends := []int64{-90, 0, 100, 1000} // [-90... calendar-like: lengths differ
	starts := map[int64]int64{-90: -100, 0: -90, 100: 0, 1000: 100}
	back := map[int64]int64{}
	for e, s := range starts {
		back[s] = e
	}
	spec := Spec{ID: "w", Kind: Window, Changelog: true,
		Layout: WindowLayout(func(e int64) int64 { return starts[e] }, func(s int64) int64 { return back[s] }, false)}
	s := openWith(t, NewMem(), spec)
	w := must[*WindowView[int64]](t)(WindowViewOf(s, "w", codec.Int64()))
	for _, e := range ends {
		w.Set(must[*Row[int64]](t)(w.Row(e, nil)), e, e-1) // A-EMPTY-KEY
	}
	db := NewMem()
	b := must[*Bulk](t)(NewBulk(db, []Spec{spec}, 0))
	for _, c := range seal(t, s) {
		if len(c.Key) != 12 {
			t.Errorf("key %x", c.Key)
		}
		if err := b.Add(c.Store, c.Key, c.Value, c.Header, c.Time); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Finish(nil); err != nil {
		t.Fatal(err)
	}
	w = must[*WindowView[int64]](t)(WindowViewOf(openWith(t, db, spec), "w", codec.Int64()))
	if got := w.Ends(nil, -1000, 5000); !slices.Equal(got, ends) {
		t.Errorf("ends: %d", got)
	}
	for _, e := range ends {
		if v, ok, err := w.Get(e, nil); v != e || !ok || err != nil {
			t.Errorf("%d: %d %v %v", e, v, ok, err)
		}
	}
}

// F-TIMER-ONCE at store level: a timer set while another one fires takes its place, each fires once, keys break ties.
func TestTimerOnce(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "t", Kind: Timers, Changelog: true})
	v := must[*TimerView](t)(TimerViewOf(s, "t"))
	set := func(key string, at int64) {
		t.Helper()
		if err := v.Set([]byte(key), nil, at); err != nil {
			t.Fatal(err)
		}
	}
	for key, at := range map[string]int64{"b": 20, "a": 20, "a\x00": 20, "x": 10, "later": 21} {
		set(key, at)
	}
	seal(t, s)
	var got []string
	for {
		key, _, at, ok, err := v.PopDue(20)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, fmt.Sprintf("%s@%d", key, at))
		if at == 10 {
			set("y", 5)
		}
	}
	if want := []string{"x@10", "y@5", "a@20", "a\x00@20", "b@20"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// "y" was set and has fired in one generation: it leaves no trace. The others leave a tombstone each.
	n := 0
	for _, c := range seal(t, s) {
		if c.Value != nil {
			t.Errorf("change %q", c.Key)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d tombstones", n)
	}
}

// A session that grows with every record leaves one changelog record per commit, and one tombstone from the second on.
func TestSessionGrows(t *testing.T) {
	s := openWith(t, NewMem(), Spec{ID: "s", Kind: Session, Changelog: true})
	v := must[*SessionView[int64]](t)(SessionViewOf(s, "s", codec.Int64()))
	q := v.Due(0)
	defer q.Close()
	at := Span{0, 10}
	if err := v.Put([]byte("k"), at, 1, 0); err != nil {
		t.Fatal(err)
	}
	for commit := range 3 {
		for range 1000 {
			to := Span{0, at.End + 1}
			if err := v.Move([]byte("k"), at, to, to.End, to.End); err != nil {
				t.Fatal(err)
			}
			at = to
		}
		if n := len(seal(t, s)); n != min(commit+1, 2) {
			t.Errorf("commit %d: %d changes", commit, n)
		}
	}
	if n := len(v.ends.buckets); n != 1 || len(v.ends.buckets[0].entries) != 1 {
		t.Errorf("%d buckets of ends, want one entry in one", n)
	}
	_, s1, ok, err := q.Next(at.End)
	if err != nil || !ok || s1 != at {
		t.Errorf("due: %v, %v, %v, want %v", s1, ok, err, at)
	}
}
