package client

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark/tidemark/query"
)

// watched pulls events of a key.
type watched struct {
	t    *testing.T
	next func() (Event[string, string], error, bool)
}

func watchKey(t *testing.T, r *Reader[string, string], key string, opts ...Option) *watched {
	next, stop := iter.Pull2(r.WatchKey(t.Context(), key, opts...))
	t.Cleanup(stop)
	return &watched{t, next}
}

// event returns the next event, written as value, reset, complete.
func (w *watched) event() (string, Event[string, string]) {
	w.t.Helper()
	e, err, ok := w.next()
	if !ok || err != nil {
		w.t.Fatalf("the watch has ended: %v, %v", err, ok)
	}
	text := ""
	for _, row := range e.Rows {
		if text += row.Value; row.Deleted {
			text += "-"
		}
	}
	if e.Reset {
		text += " reset"
	}
	if e.Complete {
		text += " complete"
	}
	return text, e
}

func (w *watched) want(want string) Event[string, string] {
	w.t.Helper()
	got, e := w.event()
	if got != want {
		w.t.Fatalf("event %q, want %q", got, want)
	}
	return e
}

func TestWatch(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		s := NewSession(nil)
		r := counts(t, a.client(Config{})).In(s)
		k := keyOf(1)
		a.put(k, "a")
		w := watchKey(t, r, k)
		e := w.want("a reset")
		if e.Partition != 1 || e.Meta.Seq != 1 || s.Position().String() != "main/1#1" {
			t.Errorf("event %+v, session %v", e, s.Position())
		}
		w.want(" complete")
		wantAsked(t, a, "watch1")
		a.put(k, "b")
		w.want("b")
		a.put(k, "")
		token := w.want("-").Token
		a.put(k, "c")
		w.want("c")
		watchKey(t, r, k, From(token)).want("c")
	})
}

// The watch goes on behind the last event when the task moves, whether the instance says so, ends, or crashes.
func TestWatchGoesOn(t *testing.T) {
	for name, leave := range map[string]func(a *app){
		"moves":      func(a *app) {},
		"crashes":    func(a *app) { a.stop(0) },
		"ends":       func(a *app) { a.instances[0].endWatches() },
		"with a gap": func(a *app) { a.move(0, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, a *app) {
				r := counts(t, a.client(Config{Endpoints: []string{endpoint(0), endpoint(1)}}))
				k := keyOf(0)
				a.put(k, "a")
				w := watchKey(t, r, k)
				w.want("a reset")
				w.want(" complete")
				a.put(k, "b")
				w.want("b")
				leave(a)
				a.put(k, "c")
				go func() {
					time.Sleep(time.Minute)
					a.move(0, 1)
					a.publish()
				}()
				w.want("c")
				time.Sleep(2 * time.Minute)
				a.put(k, "d")
				w.want("d")
			})
		})
	}
}

// What the new owner does not remember is told anew.
func TestWatchTellsResets(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		k := keyOf(0)
		a.put(k, "a")
		w := watchKey(t, r, k)
		w.want("a reset")
		w.want(" complete")
		a.move(0, -1)
		synctest.Wait()
		a.put(k, "b")
		a.put(k, "c")
		a.change(func() { a.tasks[0].log = a.tasks[0].log[2:] })
		a.move(0, 1)
		a.publish()
		w.want("c reset")
	})
}

// That the rows there are have been told is told once.
func TestWatchIsCompleteOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		k := keyOf(0)
		a.put(k, "a")
		a.instances[0].forgets = true
		w := watchKey(t, r, k)
		w.want("a reset")
		w.want(" complete")
		a.instances[0].endWatches()
		w.want("a reset")
		a.put(k, "b")
		w.want("b")
	})
}

func TestWatchErrors(t *testing.T) {
	bubble(t, 1, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		k := keyOf(0)
		a.put(k, "a")
		for _, err := range r.WatchKey(t.Context(), k, From("no token")) {
			if !is(err, query.TokenMalformed) {
				t.Errorf("bad token: %v", err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var err error
		for _, err = range r.WatchKey(ctx, k) {
		}
		if !is(err, query.Deadline) {
			t.Errorf("after an hour: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		for _, err = range r.WatchKey(ctx, k) {
			cancel()
		}
		if !is(err, query.Cancelled) {
			t.Errorf("cancelled: %v", err)
		}
		// A watch that has not begun does not wait for ever.
		a.instances[0].fail = func(m string) error {
			if m == "watch" {
				return reply(query.NoOwner, codes.Unavailable)
			}
			return nil
		}
		start := time.Now()
		for _, err = range r.WatchKey(t.Context(), k) {
		}
		if d := time.Since(start); !is(err, query.NoOwner) || d != 5*time.Second {
			t.Errorf("nobody answers: %v after %v", err, d)
		}
		a.instances[0].fail = nil
		a.instances[0].hung = true
		start = time.Now()
		for _, err = range r.WatchKey(t.Context(), k) {
		}
		if d := time.Since(start); err == nil || d > 5*time.Second+surveyTimeout {
			t.Errorf("an instance hangs: %v after %v", err, d)
		}
	})
}

// A follower of a key that is written while its task moves at random ends with the truth, sees versions in order, and is told
// everything but what one event sums up.
func TestWatchFollowsRandomMoves(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble(t, 3, func(t *testing.T, a *app) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := counts(t, a.client(Config{Endpoints: []string{endpoint(0), endpoint(1), endpoint(2)}}))
		k := keyOf(2)
		const last = 400
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 1; i <= last; i++ {
				a.put(k, fmt.Sprintf("%04d", i))
				switch random.IntN(6) {
				case 0:
					a.move(2, random.IntN(4)-1)
				case 1:
					a.publish(random.IntN(3))
				case 2:
					a.instances[random.IntN(3)].endWatches()
				case 3:
					a.change(func() {
						if l := a.tasks[2].log; len(l) > 20 {
							a.tasks[2].log = l[random.IntN(20):]
						}
					})
				}
				time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
			}
			a.move(2, 1)
			a.publish()
		}()
		seen, events := "", 0
		for e, err := range r.WatchKey(t.Context(), k) {
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range e.Rows {
				if row.Value < seen || row.Value == seen && !e.Reset {
					t.Fatalf("%s after %s", row.Value, seen)
				}
				seen = row.Value
			}
			if events++; seen == fmt.Sprintf("%04d", last) {
				break
			}
		}
		<-done
		t.Logf("%d events for %d commits", events, last)
	})
}
