package topology_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// calling is a topology whose one processor runs f for every record and emits what it returns.
func calling(f func(out emitter, r message) (string, error), handles ...topology.Handle) *topology.Topology {
	top := topology.New("t")
	top.Stream[string, string]("in").Process("p", func(out emitter, r message) error {
		s, err := f(out, r)
		out.Emit(r.Key, s)
		return err
	}, handles...).To("out")
	return top
}

// answer feeds one record and returns what comes out.
func (d *driver) answer(t *testing.T, at int64, key, value string) string {
	t.Helper()
	d.out = nil
	d.feeds(t, "in", rec(at, key, value))
	return strings.Join(d.sent(), " ")
}

// keeping is a topology with a key-value store: "put v" or "get".
func keeping(opts ...topology.Option) *topology.Topology {
	kv := topology.KeyValue[string, string]("kv", opts...)
	return calling(func(out emitter, r message) (string, error) {
		switch verb, v, _ := command(r.Value); verb {
		case "put":
			return "", kv.Put(out, r.Key, v)
		case "del":
			return "", kv.Delete(out, r.Key)
		case "all":
			var all []string
			err := kv.Scan(out, nil, nil, func(k, v string) bool { all = append(all, k+"="+v); return true })
			return fmt.Sprint(all), err
		}
		v, ok, err := kv.Get(out, r.Key)
		return fmt.Sprint(v, ok), err
	}, kv)
}

// D-TTL-SAME-FLUSH: a row that is refreshed and swept in one commit stays, index and data agree.
func TestDTTLSameFlush(t *testing.T) {
	for _, wall := range []bool{false, true} {
		opt := topology.TTL(10 * time.Millisecond)
		if wall {
			opt = topology.WallTTL(10 * time.Millisecond)
		}
		d, logs := start(t, keeping(opt)), map[string]changelog{}
		// By the clock the records' times mean nothing; by event time the clock does not.
		at := func(now int64, value string) string {
			if wall {
				d.tick(t, now)
				return d.answer(t, 7, "k", value)[6:]
			}
			s := d.answer(t, now, "k", value)
			return s[strings.Index(s, " "):][1:]
		}
		at(0, "put 1")
		d.commitTo(t, logs)
		at(11, "put 2")
		if !wall { // the watermark passes 10, when the first write would have expired
			d.feeds(t, "in", rec(12, "x", ""))
		}
		d.commitTo(t, logs)
		d.restore(t, logs)
		if got := at(20, "get"); got != "k=2true" {
			t.Errorf("wall %t: at 20: %s", wall, got)
		}
		if got := at(21, "get"); got != "k=false" {
			t.Errorf("wall %t: at 21: %s", wall, got)
		}
		at(30, "get")
		if !wall {
			d.feeds(t, "in", rec(31, "x", ""))
		}
		d.commitTo(t, logs)
		n := 0
		for _, c := range logs["kv"][0] {
			if string(c.Key) == "k" {
				n++
				if n == 3 && c.Value != nil {
					t.Error("no tombstone")
				}
			}
		}
		if n != 3 {
			t.Errorf("wall %t: %d changes", wall, n)
		}
	}
}

// What is dropped by the clock is dropped without a record, and the task says when it wants to.
func TestWallTTLWakes(t *testing.T) {
	d := start(t, keeping(topology.WallTTL(10*time.Millisecond)))
	d.tick(t, 100)
	d.feeds(t, "in", rec(1, "k", "put 1"))
	if next := d.tasks["kv"].task.NextTick(); next != 110 {
		t.Errorf("next tick at %d", next)
	}
	before := d.tasks["kv"].task.Effects()
	d.tick(t, 109)
	if d.tasks["kv"].task.Effects() != before {
		t.Error("dropped too early")
	}
	d.tick(t, 110)
	if d.tasks["kv"].task.Effects() == before || d.tasks["kv"].task.NextTick() != math.MaxInt64 {
		t.Error("not dropped")
	}
	// The time to live counts from the write, not from the last tick.
	d.tasks["kv"].task.SetNow(1000)
	d.feeds(t, "in", rec(1, "k", "put 1"))
	if next := d.tasks["kv"].task.NextTick(); next != 1010 {
		t.Errorf("next tick at %d", next)
	}
}

func TestTTLAgainstATwin(t *testing.T) {
	const ttl = 20
	type row struct {
		v     string
		until int64
	}
	type twin struct {
		rows map[string]row
		w    int64
		n    int
	}
	underFaults(t, keeping(topology.TTL(ttl*time.Millisecond)), 4000,
		func() *twin { return &twin{map[string]row{}, watermark.Unknown, 0} },
		func(w *twin) *twin { return &twin{maps.Clone(w.rows), w.w, w.n} },
		func(d *driver, rng *rand.Rand, w *twin) {
			at := max(w.w, 1000) + int64(rng.IntN(30)) - 20
			key := fmt.Sprint("k", rng.IntN(6))
			now := max(at, w.w)
			w.n++
			value, want := "get", ""
			switch rng.IntN(5) {
			case 0, 1:
				value = fmt.Sprint("put v", w.n)
				w.rows[key] = row{fmt.Sprint("v", w.n), max(at+ttl, w.rows[key].until)}
			case 2:
				value = "del"
				delete(w.rows, key)
			case 3:
				value = "all"
				var all []string
				for _, k := range slices.Sorted(maps.Keys(w.rows)) {
					if w.rows[k].until > now {
						all = append(all, k+"="+w.rows[k].v)
					}
				}
				want = fmt.Sprint(all)
			default:
				want = "false"
				if r := w.rows[key]; r.until > now {
					want = r.v + "true"
				}
			}
			want = fmt.Sprintf("out@%d %s=%s", at, key, want)
			if got := d.answer(t, at, key, value); got != want {
				t.Errorf("%s at %d, watermark %d: %s, want %s", value, at, w.w, got, want)
			}
			w.w = max(w.w, at-1)
		})
}

// D-RETENTION-READ: a window that is kept no longer is found neither by get nor by a scan, at once, nor written again.
func TestDRetentionRead(t *testing.T) {
	kind := window.Tumbling(10 * time.Millisecond)
	ws := topology.Windows[string, string]("w", kind, 30*time.Millisecond)
	d := start(t, calling(func(out emitter, r message) (string, error) {
		b := window.Bounds{Start: 0, End: 10}
		if r.Value == "put" {
			ok, err := ws.Put(out, b, r.Key, "1")
			return fmt.Sprint(ok), err
		}
		v, ok, err := ws.Get(out, b, r.Key)
		if err != nil {
			return "", err
		}
		n := 0
		err = ws.Scan(out, b, func(string, string) bool { n++; return true })
		if err == nil {
			err = ws.Fetch(out, r.Key, 0, 100, func(window.Bounds, string) bool { n++; return true })
		}
		return fmt.Sprint(v, ok, n), err
	}, ws))
	for _, c := range []struct {
		at          int64
		value, want string
	}{
		{0, "put", "true"}, {40, "get", "1true 2"}, {40, "put", "true"},
		{41, "get", "1true 2"}, // the watermark is at 39
		{42, "get", "false 0"}, {42, "put", "false"}, {0, "get", "false 0"},
	} {
		if got, want := d.answer(t, c.at, "k", c.value), fmt.Sprintf("out@%d k=%s", c.at, c.want); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	state, n := d.tasks["w"].state, 0
	d.commits(t)
	if err := state.Persist(0, true); err != nil {
		t.Fatal(err)
	}
	if err := state.Rows(0, func(_, _ []byte) { n++ }); err != nil || n != 0 {
		t.Errorf("%d rows are left, %v", n, err)
	}
	wantError(t, start(t, calling(func(out emitter, r message) (string, error) {
		_, _, err := ws.Get(out, window.Bounds{Start: 5, End: 15}, r.Key)
		return "", err
	}, remade(&ws, kind))).feed("in", rec(0, "k", "")), "p", "user", "no such window")
}

// remade makes a handle anew: a handle belongs to one topology.
func remade(ws **topology.WindowStore[string, string], kind window.Window) topology.Handle {
	*ws = topology.Windows[string, string]("w", kind, topology.Forever)
	return *ws
}

func TestWindowsAgainstATwin(t *testing.T) {
	const size, keep = 10, 25
	kind := window.Tumbling(size * time.Millisecond)
	ws := topology.Windows[string, string]("w", kind, keep*time.Millisecond)
	top := calling(func(out emitter, r message) (string, error) {
		verb, v, start := command(r.Value)
		b := window.Bounds{Start: start, End: start + size}
		switch verb {
		case "put":
			ok, err := ws.Put(out, b, r.Key, v)
			return fmt.Sprint(ok), err
		case "del":
			ok, err := ws.Delete(out, b, r.Key)
			return fmt.Sprint(ok), err
		case "scan":
			s := ""
			err := ws.Scan(out, b, func(k, v string) bool { s += k + v + ";"; return true })
			return s, err
		case "fetch":
			s := ""
			err := ws.Fetch(out, r.Key, start, start+3*size, func(b window.Bounds, v string) bool {
				s += fmt.Sprint(b.Start, v, ";")
				return true
			})
			return s, err
		}
		v, ok, err := ws.Get(out, b, r.Key)
		return fmt.Sprint(v, ok), err
	}, ws)
	type at struct {
		start int64
		key   string
	}
	type twin struct {
		rows map[at]string
		w    int64
		n    int
	}
	underFaults(t, top, 4000,
		func() *twin { return &twin{map[at]string{}, watermark.Unknown, 0} },
		func(w *twin) *twin { return &twin{maps.Clone(w.rows), w.w, w.n} },
		func(d *driver, rng *rand.Rand, w *twin) {
			w.n++
			now := max(w.w, 1000) + int64(rng.IntN(5)) - 1
			a := at{now/size*size - int64(rng.IntN(5))*size, fmt.Sprint("k", rng.IntN(3))}
			kept := func(a at) bool { return w.w == watermark.Unknown || a.start+size+keep > w.w }
			verb := [...]string{"put", "put", "del", "scan", "fetch", "get"}[rng.IntN(6)]
			want := ""
			switch verb {
			case "put":
				if want = fmt.Sprint(kept(a)); kept(a) {
					w.rows[a] = fmt.Sprint("v", w.n)
				}
			case "del":
				want = fmt.Sprint(kept(a))
				delete(w.rows, a)
			case "scan":
				for i := range 3 {
					k := at{a.start, fmt.Sprint("k", i)}
					if v, ok := w.rows[k]; ok && kept(k) {
						want += k.key + v + ";"
					}
				}
			case "fetch":
				for s := a.start; s <= a.start+3*size; s += size {
					k := at{s, a.key}
					if v, ok := w.rows[k]; ok && kept(k) {
						want += fmt.Sprint(s, v, ";")
					}
				}
			default:
				v, ok := w.rows[a]
				if !kept(a) {
					v, ok = "", false
				}
				want = fmt.Sprint(v, ok)
			}
			want = fmt.Sprintf("out@%d %s=%s", now, a.key, want)
			if got := d.answer(t, now, a.key, fmt.Sprintf("%s v%d %d", verb, w.n, a.start)); got != want {
				t.Errorf("%s %v, watermark %d: %s, want %s", verb, a, w.w, got, want)
			}
			w.w = max(w.w, now-1)
		})
}

func TestSessionsAgainstATwin(t *testing.T) {
	const keep = 20
	ss := topology.Sessions[string, string]("s", keep*time.Millisecond)
	// A record merges the sessions it touches, as long as the gap is 5, and says what it saw.
	top := calling(func(out emitter, r message) (string, error) {
		at := r.Timestamp()
		b, seen := window.Bounds{Start: at, End: at + 5}, ""
		var err error
		if e := ss.Overlapping(out, r.Key, b, func(o window.Bounds, v string) bool {
			b = window.Bounds{Start: min(b.Start, o.Start), End: max(b.End, o.End)}
			seen += fmt.Sprint(o.Start, "-", o.End, v, ";")
			err = ss.Delete(out, r.Key, o)
			return err == nil
		}); e != nil || err != nil {
			return "", cmp.Or(e, err)
		}
		ok, err := ss.Put(out, r.Key, b, r.Value)
		return fmt.Sprint(seen, ok), err
	}, ss)
	type session struct {
		b window.Bounds
		v string
	}
	type twin struct {
		rows map[string][]session
		w    int64
		n    int
	}
	underFaults(t, top, 4000,
		func() *twin { return &twin{map[string][]session{}, watermark.Unknown, 0} },
		func(w *twin) *twin {
			c := &twin{map[string][]session{}, w.w, w.n}
			for k, v := range w.rows {
				c.rows[k] = slices.Clone(v)
			}
			return c
		},
		func(d *driver, rng *rand.Rand, w *twin) {
			w.n++
			at, key := max(w.w, 1000)+int64(rng.IntN(40))-35, fmt.Sprint("k", rng.IntN(3))
			b, want := window.Bounds{Start: at, End: at + 5}, ""
			own := b
			w.rows[key] = slices.DeleteFunc(w.rows[key], func(s session) bool {
				if w.w != watermark.Unknown && s.b.End+keep <= w.w {
					return true
				}
				if s.b.Start < own.End && own.Start < s.b.End {
					want += fmt.Sprint(s.b.Start, "-", s.b.End, s.v, ";")
					b = window.Bounds{Start: min(b.Start, s.b.Start), End: max(b.End, s.b.End)}
					return true
				}
				return false
			})
			ok := w.w == watermark.Unknown || b.End+keep > w.w
			if want += fmt.Sprint(ok); ok {
				w.rows[key] = append(w.rows[key], session{b, fmt.Sprint("v", w.n)})
				slices.SortFunc(w.rows[key], func(x, y session) int { return cmp.Compare(x.b.End, y.b.End) })
			}
			want = fmt.Sprintf("out@%d %s=%s", at, key, want)
			if got := d.answer(t, at, key, fmt.Sprint("v", w.n)); got != want {
				t.Errorf("at %d, watermark %d: %s, want %s", at, w.w, got, want)
			}
			w.w = max(w.w, at-1)
		})
}

func TestVersionsAgainstATwin(t *testing.T) {
	const keep = 30
	vs := topology.Versioned[string, string]("v", keep*time.Millisecond)
	top := calling(func(out emitter, r message) (string, error) {
		switch verb, v, at := command(r.Value); verb {
		case "put":
			ok, err := vs.Put(out, r.Key, at, v)
			return fmt.Sprint(ok), err
		case "del":
			ok, err := vs.Delete(out, r.Key, at)
			return fmt.Sprint(ok), err
		case "history":
			s := ""
			err := vs.History(out, r.Key, at, at+15, func(v string, since int64, exists bool) bool {
				s += fmt.Sprint(since, v, exists, ";")
				return true
			})
			return s, err
		case "get":
			v, since, ok, err := vs.Get(out, r.Key)
			return fmt.Sprint(v, since*map[bool]int64{true: 1}[ok], ok), err
		default:
			v, since, ok, err := vs.AsOf(out, r.Key, at)
			return fmt.Sprint(v, since*map[bool]int64{true: 1}[ok], ok), err
		}
	}, vs)
	type version struct {
		since int64
		v     string // "" for none
	}
	type twin struct {
		rows map[string][]version // by since
		w    int64
		n    int
	}
	underFaults(t, top, 4000,
		func() *twin { return &twin{map[string][]version{}, watermark.Unknown, 0} },
		func(w *twin) *twin {
			c := &twin{map[string][]version{}, w.w, w.n}
			for k, v := range w.rows {
				c.rows[k] = slices.Clone(v)
			}
			return c
		},
		func(d *driver, rng *rand.Rand, w *twin) {
			w.n++
			now, key := max(w.w, 1000)+int64(rng.IntN(6))-2, fmt.Sprint("k", rng.IntN(2))
			at := now - int64(rng.IntN(50)) + 10
			horizon := int64(math.MinInt64)
			if w.w != watermark.Unknown {
				horizon = w.w - keep
			}
			asOf := func(at int64) string {
				for _, v := range slices.Backward(w.rows[key]) {
					if v.since <= at {
						if v.v == "" {
							break
						}
						return fmt.Sprint(v.v, v.since, true)
					}
				}
				return fmt.Sprint("", 0, false)
			}
			verb, want := [...]string{"put", "put", "del", "history", "get", "as-of"}[rng.IntN(6)], ""
			switch verb {
			case "put", "del":
				if want = fmt.Sprint(at >= horizon); at >= horizon {
					v := version{at, ""}
					if verb == "put" {
						v.v = fmt.Sprint("v", w.n)
					}
					i, ok := slices.BinarySearchFunc(w.rows[key], at, func(v version, at int64) int { return cmp.Compare(v.since, at) })
					if ok {
						w.rows[key][i] = v
					} else {
						w.rows[key] = slices.Insert(w.rows[key], i, v)
					}
				}
			case "history":
				from := max(at, horizon)
				for _, v := range slices.Backward(w.rows[key]) {
					if v.since > at+15 {
						continue
					}
					want += fmt.Sprint(v.since, v.v, v.v != "", ";")
					if v.since <= from {
						break
					}
				}
			case "get":
				want = asOf(math.MaxInt64)
			default:
				if want = asOf(at); at < horizon {
					want = fmt.Sprint("", 0, false)
				}
			}
			if verb == "history" && at+15 < horizon {
				return // before the history that is kept there may be anything
			}
			want = fmt.Sprintf("out@%d %s=%s", now, key, want)
			if got := d.answer(t, now, key, fmt.Sprintf("%s v%d %d", verb, w.n, at)); got != want {
				t.Errorf("%s %d, watermark %d: %s, want %s", verb, at, w.w, got, want)
			}
			w.w = max(w.w, now-1)
		})
}

func TestListsAgainstATwin(t *testing.T) {
	ls := topology.Lists[string, string]("l")
	top := calling(func(out emitter, r message) (string, error) {
		switch verb, v, n := command(r.Value); verb {
		case "append":
			return "", ls.Append(out, r.Key, v)
		case "pop":
			return "", ls.PopFront(out, r.Key, int(n))
		case "clear":
			return "", ls.Clear(out, r.Key)
		case "two":
			s := ""
			err := ls.Each(out, r.Key, func(v string) bool { s += v; return len(s) < 4 })
			return s, err
		}
		n, err := ls.Len(out, r.Key)
		if err != nil {
			return "", err
		}
		s := fmt.Sprint(n)
		return s, ls.Each(out, r.Key, func(v string) bool { s += v; return true })
	}, ls)
	type twin struct {
		rows map[string][]string
		n    int
	}
	underFaults(t, top, 3000,
		func() *twin { return &twin{map[string][]string{}, 0} },
		func(w *twin) *twin {
			c := &twin{map[string][]string{}, w.n}
			for k, v := range w.rows {
				c.rows[k] = slices.Clone(v)
			}
			return c
		},
		func(d *driver, rng *rand.Rand, w *twin) {
			w.n++
			key := fmt.Sprint("k", rng.IntN(3))
			verb, v, n, want := "", fmt.Sprint("v", w.n%10), rng.IntN(4), ""
			switch have := w.rows[key]; rng.IntN(8) {
			case 0, 1, 2:
				verb, w.rows[key] = "append", append(have, v)
			case 3:
				verb, w.rows[key] = "pop", have[min(n, len(have)):]
			case 4:
				if rng.IntN(4) > 0 {
					return
				}
				verb = "clear"
				delete(w.rows, key)
			case 5:
				verb, want = "two", strings.Join(have[:min(2, len(have))], "")
			default:
				verb, want = "show", fmt.Sprint(len(have))+strings.Join(have, "")
			}
			want = fmt.Sprintf("out@1 %s=%s", key, want)
			if got := d.answer(t, 1, key, fmt.Sprintf("%s %s %d", verb, v, n)); got != want {
				t.Errorf("%s: %s, want %s", verb, got, want)
			}
		})
}
