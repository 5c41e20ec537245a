package store

import (
	"fmt"
	"math"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

// tallyDB counts the rows of loads.
type tallyDB struct {
	DB
	sets, deletes int
}

func (d *tallyDB) Load(r Run) error { return d.DB.Load(&tallyRun{r, d}) }

type tallyRun struct {
	Run
	d *tallyDB
}

func (r *tallyRun) Next() bool {
	if !r.Run.Next() {
		return false
	}
	if r.Value() == nil {
		r.d.deletes++
	} else {
		r.d.sets++
	}
	return true
}

// Sessions that begin and end within a layer leave nothing in the DB, under none of the spans they have had.
func TestSessionsComeAndGo(t *testing.T) {
	db := &tallyDB{DB: NewMem()}
	s := openWith(t, db, Spec{ID: "s", Kind: Session, Changelog: true})
	v := must[*SessionView[int64]](t)(SessionViewOf(s, "s", codec.Int64()))
	q := v.Due(math.MinInt64)
	key := func(i int) []byte { return fmt.Appendf(nil, "k%04d", i%1000) }
	const gap, life = 30, 100
	for i := range 50_000 {
		now := int64(i)
		at := Span{now, now + gap}
		if i%3 == 2 { // lengthens the one made before, which was sealed in between, now and then
			err := v.Move(key(i-1), Span{now - 1, now - 1 + gap}, Span{now - 1, now + gap}, 2, now)
			if err != nil {
				t.Fatal(err)
			}
		} else if err := v.Put(key(i), at, 1, now); err != nil {
			t.Fatal(err)
		}
		for {
			k, s, ok, err := q.Next(now - life)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if err := v.Remove(k, s, now); err != nil {
				t.Fatal(err)
			}
		}
		if i%50 == 49 {
			seal(t, s)
		}
	}
	if err := s.Persist(0, true); err != nil {
		t.Fatal(err)
	}
	// Rows, due times, and the meta rows.
	if live := (life + gap) * 2 / 3; db.sets > 2*live+10 || db.deletes > 0 {
		t.Errorf("%d rows set, %d deleted, with %d sessions", db.sets, db.deletes, live)
	}
	if n := len(v.ends.buckets); n > 2 {
		t.Errorf("%d buckets of ends", n)
	}
}
