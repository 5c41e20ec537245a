package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark/tidemark/codec"
)

// shelf is a State with a store of three kinds, beside a naive model of what it holds.
type shelf struct {
	t       *testing.T
	s       *State
	kv      *View[int64]
	win     *WindowView[int64]
	ses     *SessionView[int64]
	cur     [3]map[string]int64
	floor   int64 // windows up to that end are gone
	sealed  [3]map[string]int64
	commits [][3]map[string]int64 // by number, from 0: empty
	now     int64
}

func newShelf(t *testing.T, db DB, o Options) *shelf {
	s, err := Open(db, []Spec{
		{ID: "kv", Kind: KeyValue, Changelog: true}, {ID: "win", Kind: Window, Changelog: true}, {ID: "ses", Kind: Session, Changelog: true},
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	h := &shelf{t: t, s: s, commits: make([][3]map[string]int64, 1)}
	h.kv = must[*View[int64]](t)(ViewOf(s, "kv", codec.Int64()))
	h.win = must[*WindowView[int64]](t)(WindowViewOf(s, "win", codec.Int64()))
	h.ses = must[*SessionView[int64]](t)(SessionViewOf(s, "ses", codec.Int64()))
	for i := range h.cur {
		h.cur[i] = map[string]int64{}
	}
	return h
}

func (h *shelf) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// write changes some rows at random.
func (h *shelf) write(rng *rand.Rand, n int) {
	for range n {
		h.now++
		key := fmt.Appendf(nil, "k%02d", rng.IntN(40))
		val := h.now
		switch rng.IntN(6) {
		case 0:
			h.check(h.kv.Delete(key, h.now))
			delete(h.cur[0], string(key))
		case 1, 2:
			h.check(h.kv.Put(key, val, h.now))
			h.cur[0][string(key)] = val
		case 3:
			end := h.floor + 10*(1+rng.Int64N(4))
			r, err := h.win.Row(end, key)
			h.check(err)
			k := string(AppendWindowKey(nil, end, key))
			if rng.IntN(5) == 0 {
				h.win.Remove(r, h.now)
				delete(h.cur[1], k)
			} else {
				h.win.Set(r, val, h.now)
				h.cur[1][k] = val
			}
		default:
			start := rng.Int64N(20) * 100
			at := Span{start, start + 1 + rng.Int64N(3)}
			k := string(AppendSessionKey(nil, key, at))
			if rng.IntN(2) == 0 {
				h.check(h.ses.Remove(key, at, h.now))
				delete(h.cur[2], k)
			} else {
				h.check(h.ses.Put(key, at, val, h.now))
				h.cur[2][k] = val
			}
		}
	}
	if rng.IntN(20) == 0 {
		h.floor += 10
		h.win.Expire(h.floor)
		maps.DeleteFunc(h.cur[1], func(k string, _ int64) bool { return timeAt([]byte(k)) <= h.floor })
	}
}

func (h *shelf) clone() (out [3]map[string]int64) {
	for i, m := range h.cur {
		out[i] = maps.Clone(m)
	}
	return out
}

func (h *shelf) seal() {
	h.check(h.s.Seal(func(Change) error { return nil }))
	h.sealed = h.clone()
}

func (h *shelf) commit() *Reading {
	h.check(h.s.Commit([]byte("p"), h.now))
	h.commits = append(h.commits, h.sealed)
	return h.s.Publish(uint64(len(h.commits) - 1))
}

// holds compares everything a reading says with the commit it is of.
func (h *shelf) holds(r *Reading) {
	t := h.t
	t.Helper()
	want := h.commits[r.Seq]
	for store := range want {
		asked := append(slices.Collect(maps.Keys(want[store])), "k00", "k77")
		if r.Seq > 10 { // what was there and may have gone
			asked = slices.AppendSeq(asked, maps.Keys(h.commits[r.Seq-10][store]))
		}
		for _, k := range asked {
			row, ok, err := r.Get([]byte("x"), store, []byte(k))
			if errors.Is(err, ErrOutdated) {
				if r.Seq+1 == uint64(len(h.commits)) {
					t.Fatalf("the newest reading is outdated")
				}
				continue
			}
			h.check(err)
			val, present := want[store][k]
			if ok != present || ok && int64(binary.BigEndian.Uint64(row[1+timeLen:])) != val {
				t.Fatalf("commit %d, store %d: %q is %x, %v; want %d, %v", r.Seq, store, k, row, ok, val, present)
			}
		}
		got := map[string]int64{}
		var keys []string
		it, err := r.Scan(store, nil, nil)
		if errors.Is(err, ErrOutdated) {
			continue
		}
		h.check(err)
		for it.Next() {
			got[string(it.Key())] = int64(binary.BigEndian.Uint64(it.Value()[timeLen:]))
			keys = append(keys, string(it.Key()))
		}
		h.check(it.Err())
		h.check(it.Close())
		if !slices.IsSorted(keys) || len(keys) != len(got) || !maps.Equal(got, want[store]) {
			t.Fatalf("commit %d, store %d: scan %v\nwant %v", r.Seq, store, got, want[store])
		}
	}
	h.groups(r)
}

// groups walks over the windows of a reading.
func (h *shelf) groups(r *Reading) {
	ends := map[int64]bool{}
	for k := range h.commits[r.Seq][1] {
		ends[timeAt([]byte(k))] = true
	}
	at := AppendTimeKey(nil, -1<<62)
	for {
		p, ok, err := r.Group(1, at)
		if errors.Is(err, ErrOutdated) {
			return
		}
		h.check(err)
		if !ok {
			break
		}
		delete(ends, timeAt(p))
		at = Successor(p)
	}
	if len(ends) > 0 {
		h.t.Fatalf("commit %d: windows %v are in no group", r.Seq, ends)
	}
}

// since compares the changes from one commit to another with the difference of the two.
func (h *shelf) since(r *Reading, seq uint64) {
	for store := range 3 {
		changed := map[string]bool{}
		if !r.Since(seq, store, func(key, row []byte) {
			if changed[string(key)] {
				return
			}
			changed[string(key)] = true
			val, ok := h.commits[r.Seq][store][string(key)]
			if ok != (row != nil) || ok && int64(binary.BigEndian.Uint64(row[timeLen:])) != val {
				h.t.Fatalf("commits %d to %d, store %d: %q became %x, want %d, %v", seq, r.Seq, store, key, row, val, ok)
			}
		}) {
			continue
		}
		for k, val := range h.commits[r.Seq][store] {
			if old, ok := h.commits[seq][store][k]; (!ok || old != val) && !changed[k] {
				h.t.Fatalf("commits %d to %d, store %d: the change of %q is missing", seq, r.Seq, store, k)
			}
		}
		for k := range h.commits[seq][store] {
			if _, ok := h.commits[r.Seq][store][k]; !ok && !changed[k] && (store != 1 || timeAt([]byte(k)) > h.floor) {
				h.t.Fatalf("commits %d to %d, store %d: the end of %q is missing", seq, r.Seq, store, k)
			}
		}
	}
}

// Readings show exactly their commit, whatever the worker does meanwhile, or say that they are outdated.
func TestReadingTwin(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			h := newShelf(t, NewMem(), Options{LayerAge: time.Hour, ViewBytes: 1 << 10})
			kept := []*Reading{h.s.Publish(0)}
			var flight *Frozen
			for range 250 {
				h.write(rng, rng.IntN(30))
				switch rng.IntN(10) {
				case 0:
					if rng.IntN(2) == 0 {
						h.seal()
					}
					h.s.Rollback()
					h.cur = h.last()
				case 1:
					if flight == nil {
						flight = h.s.Freeze(h.now, true)
					} else {
						if rng.IntN(2) == 0 {
							h.check(flight.Write())
						}
						if flight.returned {
							h.check(h.s.Finish())
							flight = nil
							kept = append(kept, h.s.Publish(uint64(len(h.commits)-1)))
						}
					}
				default:
					h.seal()
					h.write(rng, rng.IntN(5))
					kept = append(kept, h.commit())
				}
				if rng.IntN(4) == 0 {
					h.holds(kept[rng.IntN(len(kept))])
				}
				newest := kept[len(kept)-1]
				if rng.IntN(4) == 0 {
					h.holds(newest)
					h.since(newest, uint64(rng.IntN(int(newest.Seq)+1)))
				}
				if len(kept) > 40 {
					kept = kept[20:]
				}
			}
			if flight != nil {
				h.check(flight.Write())
				h.check(h.s.Finish())
			}
			h.check(h.s.Close())
			if _, _, err := kept[len(kept)-1].Get(nil, 0, []byte("k77")); !errors.Is(err, ErrClosed) {
				t.Errorf("a read after Close: %v", err)
			}
		})
	}
}

// last returns a copy of the last commit, and what the windows' floor does to it.
func (h *shelf) last() (out [3]map[string]int64) {
	for i := range out {
		out[i] = map[string]int64{}
		maps.Copy(out[i], h.commits[len(h.commits)-1][i])
	}
	if f := h.s.Floor(1); len(f) > 0 {
		h.floor = timeAt(f) - 1
	} else {
		h.floor = 0
	}
	return out
}

// Readers on goroutines of their own never see anything but commits, in order, while the worker goes on, and closing does
// not wait for the one that holds an iterator.
func TestReadingBesideTheWorker(t *testing.T) {
	h := newShelf(t, NewMem(), Options{LayerRecords: 500, ViewBytes: 1 << 12})
	const keys = 50
	var current atomic.Pointer[Reading]
	put := func(n int64) {
		for k := range keys {
			h.check(h.kv.Put(fmt.Appendf(nil, "k%02d", k), n, n))
		}
		h.check(h.s.Seal(func(Change) error { return nil }))
		h.check(h.s.Commit([]byte("p"), n))
		current.Store(h.s.Publish(uint64(n)))
	}
	put(1)
	var wg sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		wg.Go(func() {
			var last int64
			for !stop.Load() {
				r := current.Load()
				row, ok, err := r.Get(nil, 0, []byte("k07"))
				if errors.Is(err, ErrOutdated) {
					continue
				}
				if err != nil || !ok || int64(binary.BigEndian.Uint64(row[timeLen:])) != int64(r.Seq) || int64(r.Seq) < last {
					t.Errorf("commit %d: %x, %v, %v", r.Seq, row, ok, err)
					return
				}
				last = int64(r.Seq)
				it, err := r.Scan(0, []byte("k"), nil)
				if errors.Is(err, ErrOutdated) {
					continue
				}
				n := 0
				for ; it.Next(); n++ {
					if v := binary.BigEndian.Uint64(it.Value()[timeLen:]); v != r.Seq {
						t.Errorf("commit %d: a scan shows %d", r.Seq, v)
						return
					}
				}
				if err := errors.Join(it.Err(), it.Close()); err != nil || n != keys {
					t.Errorf("commit %d: a scan shows %d rows, %v", r.Seq, n, err)
					return
				}
			}
		})
	}
	for n := int64(2); n < 400; n++ {
		put(n)
		h.check(h.s.Persist(n, false))
		current.Store(h.s.Publish(uint64(n)))
	}
	stop.Store(true)
	wg.Wait()
	h.check(h.s.Persist(400, true))
	it, err := h.s.Publish(399).Scan(0, nil, nil)
	h.check(err)
	it.Next()
	h.check(h.s.Close())
	if it.Next() || !errors.Is(it.Err(), ErrClosed) {
		t.Errorf("an iterator of a closed State: %v", it.Err())
	}
	h.check(it.Close())
}
