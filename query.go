package tidemark

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/topology"
)

var _ query.Source = (*App)(nil)

// Stores returns the stores of the app that can be asked, by name.
func (a *App) Stores() []*query.Store { return a.engine.Stores() }

// Hosts returns which instance runs which task, as far as this one knows.
func (a *App) Hosts() *query.Map { return a.engine.Hosts() }

// View returns the committed state of a task of this instance, see query.Source. Most callers want Query, or a server of
// package serve in front of the app.
func (a *App) View(ctx context.Context, t query.Task, w query.Want) (*query.View, error) {
	return a.engine.View(ctx, t, w)
}

// Watch returns the changes of a task of this instance, see query.Source.
func (a *App) Watch(ctx context.Context, t query.Task, s query.WatchSpec) (query.Watcher, error) {
	return a.engine.Watch(ctx, t, s)
}

// Reader reads a store in this process, as of the last commits. It may be used by many goroutines.
//
// It knows the tasks of this instance only. The error for a key of another one is a *query.Error with the reason
// query.NotOwner, which names the instance; package serve and its client ask that.
type Reader[K, V any] struct {
	app *App
	id  string
	k   codec.Codec[K]
	v   codec.Codec[V]
	err error
}

// Query returns a reader of a store: of a table, of an aggregate over windows, or of a handle of a custom processor's
// store. An error, such as that of a table without a store, comes with the first read.
//
//	totals := in.KeyBy("by-customer", Order.CustomerID).Sum("totals", Order.Amount)
//	…
//	got, err := tidemark.Query(app, totals).Get(ctx, "c42")
func Query[K, V any](a *App, s topology.Stored[K, V]) *Reader[K, V] {
	r := &Reader[K, V]{app: a}
	r.id, r.k, r.v, r.err = s.Stored()
	return r
}

// Wish says how new an answer must be.
type Wish func(*query.Want)

// Stale takes the state of a task that is still being restored as well, unless it lacks more than maxLag records of its
// changelogs; 0: any number.
func Stale(maxLag int64) Wish {
	return func(w *query.Want) { w.Consistency, w.MaxLag = query.Stale, maxLag }
}

// AtWatermark waits until the event time of the task has reached t.
func AtWatermark(t time.Time) Wish {
	return func(w *query.Want) { w.MinWatermark, w.HasMinWatermark = t.UnixMilli(), true }
}

// AtPosition waits until the answer reflects a position: that of an earlier answer, so that reads do not go back in time,
// or that of a record that was produced, so that one reads what one has written.
func AtPosition(p query.Position) Wish {
	return func(w *query.Want) { w.Position = w.Position.Merge(p) }
}

// Produced is the position of a record of an input topic.
func Produced(topic string, partition int32, offset int64) query.Position {
	return query.Position{{Name: topic, Partition: partition, Number: offset}}
}

// Result is the answer about one key.
type Result[V any] struct {
	Value V
	// Found says whether the store has the key; Value is the zero value if not.
	Found bool
	// Meta says what the answer was read from.
	query.Meta
}

// Row is one row of a store.
type Row[K, V any] struct {
	Key   K
	Value V
	// Start and End are the bounds of the window or session: Start <= t < End. For a version Start is since when it is
	// valid. For a list Start holds the index, in ms since 1970.
	Start, End time.Time
	// Time is the timestamp of the row.
	Time time.Time
}

// Get returns the value of a key, of a versioned store the latest.
func (r *Reader[K, V]) Get(ctx context.Context, key K, wishes ...Wish) (res Result[V], err error) {
	err = r.at(ctx, key, wishes, func(v *query.View, s *query.Store, k []byte) error {
		row, ok, err := v.Get(s, k)
		res = Result[V]{Found: ok, Meta: v.Meta}
		if err != nil || !ok {
			return err
		}
		res.Value, err = r.v.Decode(row.Value)
		return err
	})
	return res, err
}

// Rows returns the rows of a key in the order of Page: its windows that start between from and to, both included, its
// sessions or versions with a moment in that span, or the values of its list. Zero times are no bounds.
func (r *Reader[K, V]) Rows(ctx context.Context, key K, from, to time.Time, wishes ...Wish) (rows []Row[K, V], err error) {
	page := query.Page{Rows: maxPage, Bytes: maxPageBytes, From: -1 << 63, To: 1<<63 - 1, HasTime: !from.IsZero() || !to.IsZero()}
	if !from.IsZero() {
		page.From = from.UnixMilli()
	}
	if !to.IsZero() {
		page.To = to.UnixMilli()
	}
	err = r.at(ctx, key, wishes, func(v *query.View, s *query.Store, k []byte) error {
		rows, page.Key, page.After = nil, k, nil
		for {
			found, next, err := v.Read(ctx, s, page)
			if err != nil {
				return err
			}
			if rows, err = r.decode(rows, found); err != nil || next == nil {
				return err
			}
			page.After = next
		}
	})
	return rows, err
}

const (
	maxPage      = 1000
	maxPageBytes = 4 << 20
)

// Local returns the rows of the partitions that this instance runs, partition by partition in the order of Page. Each page
// is as of one commit; a partition that leaves meanwhile ends the sequence with an error.
func (r *Reader[K, V]) Local(ctx context.Context, wishes ...Wish) iter.Seq2[Row[K, V], error] {
	return func(yield func(Row[K, V], error) bool) {
		s, err := r.store()
		if err != nil {
			yield(Row[K, V]{}, err)
			return
		}
		m := r.app.Hosts()
		for p := range s.Partitions {
			t := query.Task{Sub: s.Sub, Partition: p}
			if _, self, ok := m.Owner(t); !ok || !self {
				continue
			}
			page := query.Page{Rows: maxPage, Bytes: maxPageBytes}
			for more := true; more; {
				var rows []Row[K, V]
				err := r.view(ctx, t, wishes, func(v *query.View) error {
					found, next, err := v.Read(ctx, s, page)
					if err != nil {
						return err
					}
					rows, err = r.decode(nil, found)
					page.After, more = next, next != nil
					return err
				})
				if err != nil {
					yield(Row[K, V]{}, err)
					return
				}
				for _, row := range rows {
					if !yield(row, nil) {
						return
					}
				}
			}
		}
	}
}

func (r *Reader[K, V]) decode(dst []Row[K, V], rows []query.Row) ([]Row[K, V], error) {
	for _, q := range rows {
		row := Row[K, V]{Start: time.UnixMilli(q.Start), End: time.UnixMilli(q.End), Time: time.UnixMilli(q.Time)}
		var err error
		if row.Key, err = r.k.Decode(q.Key); err == nil {
			row.Value, err = r.v.Decode(q.Value)
		}
		if err != nil {
			return dst, fmt.Errorf("tidemark: query %s: %w", r.id, err)
		}
		dst = append(dst, row)
	}
	return dst, nil
}

// store returns the description of the store.
func (r *Reader[K, V]) store() (*query.Store, error) {
	if r.err != nil {
		return nil, r.err
	}
	for _, s := range r.app.Stores() {
		if s.ID == r.id {
			return s, nil
		}
	}
	return nil, query.Errorf(query.StoreNotFound, "the app has no store %s", r.id)
}

// at calls fn with the view of the task that has a key.
func (r *Reader[K, V]) at(ctx context.Context, key K, wishes []Wish, fn func(*query.View, *query.Store, []byte) error) error {
	s, err := r.store()
	if err != nil {
		return err
	}
	k, err := r.k.Append(nil, key)
	if err != nil {
		return &query.Error{Reason: query.KeyMalformed, Message: "the key cannot be encoded", Store: r.id, Err: err}
	}
	if s.Partitions == 0 {
		return query.Errorf(query.NoOwner, "the app has not looked at its topics yet")
	}
	t := query.Task{Sub: s.Sub, Partition: processor.PartitionOf(k, s.Partitions)}
	return r.view(ctx, t, wishes, func(v *query.View) error { return fn(v, s, k) })
}

// view calls fn with the view of a task, again if the state has moved on while it was read.
func (r *Reader[K, V]) view(ctx context.Context, t query.Task, wishes []Wish, fn func(*query.View) error) error {
	var w query.Want
	for _, f := range wishes {
		f(&w)
	}
	for {
		v, err := r.app.View(ctx, t, w)
		if err != nil {
			return err
		}
		err = fn(v)
		v.Close()
		if !errors.Is(err, &query.Error{Reason: query.Moved}) || ctx.Err() != nil {
			return err
		}
		// If the task has left, View says so.
	}
}
