package client

import (
	"sync"
	"testing"
	"time"

	"github.com/tidemark/tidemark/query"
)

func TestSessionIsMonotonic(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		s := NewSession(nil)
		r := counts(t, a.client(Config{})).In(s)
		k := keyOf(0)
		a.put(k, "a")
		a.put(k, "b")
		get(t, r, k, "b")
		// The task comes back to an earlier commit, as if an old owner still answered: the read waits for the later one.
		a.change(func() { a.tasks[0].seq, a.tasks[0].rows[k] = 1, "a" })
		time.AfterFunc(time.Second, func() { a.put(k, "b") })
		start := time.Now()
		get(t, r, k, "b")
		if time.Since(start) < time.Second {
			t.Error("an earlier commit was read")
		}
		// A key that is not there counts as seen too.
		if get(t, r, keyOf(2), ""); s.Position().Commit(query.Task{Sub: "main", Partition: 0}) != 2 {
			t.Errorf("position %v", s.Position())
		}
	})
}

// Rows of scans and of many keys count as seen.
func TestSessionSeesRows(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		for name, read := range map[string]func(r *Reader[string, string]) error{
			"Scan": func(r *Reader[string, string]) error {
				_, err := keysOf(r.Scan(t.Context(), PageRows(3)))
				return err
			},
			"MultiGet": func(r *Reader[string, string]) error {
				_, err := r.MultiGet(t.Context(), []string{keyOf(0), keyOf(1), keyOf(2), keyOf(3)})
				return err
			},
		} {
			fill(a, 10)
			s := NewSession(nil)
			if err := read(counts(t, a.client(Config{})).In(s)); err != nil {
				t.Fatal(err)
			}
			for p, task := range a.tasks {
				if got := s.Position().Commit(query.Task{Sub: "main", Partition: int32(p)}); got != task.seq {
					t.Errorf("%s: partition %d: saw commit %d, want %d", name, p, got, task.seq)
				}
			}
		}
	})
}

// The position that a question carries is that of its task, of topics that the tasks read.
func TestSessionPosition(t *testing.T) {
	s := NewSession(query.Position{{Name: "main", Partition: 1, Commit: true, Number: 7}})
	s.Wrote("in", 1, 41)
	s.Wrote("in", 1, 40)
	s.Wrote("other", 1, 9)
	s.Saw(query.Position{{Name: "main", Partition: 2, Commit: true, Number: 8}, {Name: "more", Partition: 1, Commit: true, Number: 3}, {Name: "main", Partition: 1, Commit: true, Number: 6}})
	one := int32(1)
	for _, c := range []struct {
		sub       string
		partition *int32
		want      string
	}{
		{"main", &one, "in/1@41,main/1#7"},
		{"main", nil, "in/1@41,main/1#7,main/2#8"},
		{"", nil, "in/1@41,main/1#7,main/2#8,more/1#3,other/1@9"},
	} {
		if got := s.about(c.sub, []string{"in"}, c.partition).String(); got != c.want {
			t.Errorf("about %q: got %s, want %s", c.sub, got, c.want)
		}
	}
	if again := NewSession(s.Position()); again.Position().String() != s.Position().String() {
		t.Errorf("a session of a position has the position %s", again.Position())
	}
}

func TestSessionIsShared(t *testing.T) {
	s := NewSession(nil)
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			for n := range int64(100) {
				s.Wrote("in", 0, n*8+i)
				s.Position()
			}
		})
	}
	all.Wait()
	if got := s.Position().String(); got != "in/0@799" {
		t.Errorf("got %s", got)
	}
}
