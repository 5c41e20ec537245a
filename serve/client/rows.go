package client

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Scan returns all rows, in the order of the API: by partition, and in each by encoded key. Pages are fetched as the rows are
// taken. An error is the last thing yielded.
func (r *Reader[K, V]) Scan(ctx context.Context, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Scan, opts, func(*apiv1.RowsRequest) error { return nil })
}

// Range returns the rows with from <= key < to, in the order of encoded keys; see Scan.
func (r *Reader[K, V]) Range(ctx context.Context, from, to K, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Scan, opts, func(req *apiv1.RowsRequest) (err error) {
		if req.RawFromKey, err = r.encode(from); err == nil {
			req.RawToKey, err = r.encode(to)
		}
		return err
	})
}

// Prefix returns the rows whose keys begin with a key, of stores whose keys are strings or bytes; see Scan.
func (r *Reader[K, V]) Prefix(ctx context.Context, prefix K, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Scan, opts, func(req *apiv1.RowsRequest) (err error) {
		req.RawPrefix, err = r.prefix(prefix)
		return err
	})
}

func (r *Reader[K, V]) prefix(prefix K) ([]byte, error) {
	if s := r.key.Schema(); s != "string" && s != "bytes" {
		return nil, &query.Error{Reason: query.KeyMalformed, Store: r.name, Message: "keys of " + s + " have no prefix: only strings and bytes do"}
	}
	return r.encode(prefix)
}

// Windows returns the windows of a key that start between from and to, both included; a zero time is no bound. With
// Containing those that contain a moment.
func (r *Reader[K, V]) Windows(ctx context.Context, key K, from, to time.Time, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Windows, opts, r.of(key, from, to))
}

// AllWindows returns the windows of all keys; see Windows.
func (r *Reader[K, V]) AllWindows(ctx context.Context, from, to time.Time, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Windows, opts, between(from, to))
}

// Sessions returns the sessions of a key that have a moment between from and to; see Windows.
func (r *Reader[K, V]) Sessions(ctx context.Context, key K, from, to time.Time, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Sessions, opts, r.of(key, from, to))
}

// AllSessions returns the sessions of all keys; see Sessions.
func (r *Reader[K, V]) AllSessions(ctx context.Context, from, to time.Time, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Sessions, opts, between(from, to))
}

// History returns the versions of a key that were valid at some moment between from and to, the latest first; a zero time is
// no bound.
func (r *Reader[K, V]) History(ctx context.Context, key K, from, to time.Time, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, History, opts, r.of(key, from, to))
}

// Values returns the list of a key, the first value first.
func (r *Reader[K, V]) Values(ctx context.Context, key K, opts ...Option) iter.Seq2[Row[K, V], error] {
	return r.rows(ctx, Values, opts, r.of(key, time.Time{}, time.Time{}))
}

func between(from, to time.Time) func(*apiv1.RowsRequest) error {
	return func(req *apiv1.RowsRequest) error {
		req.From, req.To = millis(from), millis(to)
		return nil
	}
}

func (r *Reader[K, V]) of(key K, from, to time.Time) func(*apiv1.RowsRequest) error {
	return func(req *apiv1.RowsRequest) (err error) {
		req.From, req.To = millis(from), millis(to)
		req.RawKey, err = r.encode(key)
		return err
	}
}

// rows asks for rows page by page.
func (r *Reader[K, V]) rows(ctx context.Context, m RowsMethod, opts []Option, fill func(*apiv1.RowsRequest) error) iter.Seq2[Row[K, V], error] {
	return func(yield func(Row[K, V], error) bool) {
		left, missing, err := r.eachRow(ctx, m, optionsOf(opts), fill, func(row Row[K, V]) bool { return yield(row, nil) })
		switch {
		case err != nil:
			yield(Row[K, V]{}, err)
		case left && len(missing) > 0:
			yield(Row[K, V]{}, partial(r.name, missing))
		}
	}
}

func partial(store string, missing []int32) error {
	return &query.Error{Reason: query.Partial, Message: "partitions have no answer", Store: store, Missing: missing}
}

// eachRow calls fn for rows until it returns false; left says that it never did.
func (r *Reader[K, V]) eachRow(ctx context.Context, m RowsMethod, o *options, fill func(*apiv1.RowsRequest) error, fn func(Row[K, V]) bool) (left bool, missing []int32, err error) {
	req := &apiv1.RowsRequest{
		Store: r.name, Partition: o.partition, Filter: o.filter, At: o.at, AllowPartial: o.partial, Raw: true,
		Consistency: o.consistency, MaxLag: o.maxLag, MinWatermark: o.minWatermark,
	}
	if m == Scan && o.asOf != "" {
		req.At = o.asOf
	}
	if err := fill(req); err != nil {
		return false, nil, err
	}
	bounded, cancel := r.c.bounded(ctx)
	st, err := r.look(bounded)
	cancel()
	if err != nil {
		return false, nil, err
	}
	// What the session sees meanwhile is not asked of later pages: a page is never as of an earlier commit than those before,
	// and the question of all pages is the same.
	req.Position = r.position(st, o, req.RawKey)
	rest := o.limit
	if o.limit <= 0 {
		rest = -1
	}
	req.Limit = o.page
	for {
		if rest >= 0 {
			req.Limit = min(o.page, int32(min(rest, 1<<30)))
		}
		page, err := r.c.Page(ctx, m, req)
		if err != nil {
			return false, nil, err
		}
		metas, err := metasOf(page.Metas)
		if err != nil {
			return false, nil, &query.Error{Reason: query.Failed, Message: "the position of an answer cannot be read", Store: r.name, Err: err}
		}
		for _, m := range metas {
			if r.session != nil {
				r.session.Saw(m.Position)
			}
		}
		missing = append(missing, page.Missing...)
		for _, w := range page.Rows {
			row, err := r.row(w, metas[w.GetPartition()])
			if err != nil {
				return false, nil, err
			}
			if !fn(row) {
				return false, nil, nil
			}
			if rest--; rest == 0 {
				return true, missing, nil
			}
		}
		if page.NextPageToken == "" {
			return true, missing, nil
		}
		req = proto.CloneOf(req)
		req.PageToken = page.NextPageToken
	}
}
