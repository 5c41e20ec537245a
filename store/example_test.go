package store_test

import (
	"fmt"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

// The life of a write: processed, sealed, committed, persisted.
func Example() {
	db := store.NewMem() // pebblestore.Open in production
	s, err := store.Open(db, []store.Spec{{ID: "counts", ValueSchema: "int64", Changelog: true}}, store.Options{})
	if err != nil {
		panic(err)
	}
	counts, err := store.ViewOf(s, "counts", codec.Int64())
	if err != nil {
		panic(err)
	}
	for _, word := range []string{"tide", "mark", "tide"} {
		row, err := counts.Row([]byte(word))
		if err != nil {
			panic(err)
		}
		counts.Set(row, row.Value+1, 1000)
	}
	// The worker produces the changes and ends its transaction.
	err = s.Seal(func(c store.Change) error {
		fmt.Printf("changelog %s: %x at %d\n", c.Key, c.Value, c.Time)
		return nil
	})
	if err != nil {
		panic(err)
	}
	// The transaction has committed: so does the state.
	if err := s.Commit([]byte("offset 3"), 2000); err != nil {
		panic(err)
	}
	if err := s.Persist(2000, true); err != nil {
		panic(err)
	}
	fmt.Printf("persisted up to %s\n", s.Progress())
	// Output:
	// changelog tide: 0000000000000002 at 1000
	// changelog mark: 0000000000000001 at 1000
	// persisted up to offset 3
}
