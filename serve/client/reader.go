package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Reader reads one store in Go types. It may be used by many goroutines.
type Reader[K, V any] struct {
	c       *Client
	name    string
	key     codec.Codec[K]
	value   codec.Codec[V]
	session *Session
}

// Store returns a reader of a store. The codecs are those of the app; nil is codec.For. The error is that of codec.For.
// Whether there is such a store, with such keys and values, is seen with the first read.
func Store[K, V any](c *Client, name string, key codec.Codec[K], value codec.Codec[V]) (*Reader[K, V], error) {
	var err error
	if key == nil {
		if key, err = codec.For[K](); err != nil {
			return nil, fmt.Errorf("client: keys of store %s: %w", name, err)
		}
	}
	if value == nil {
		if value, err = codec.For[V](); err != nil {
			return nil, fmt.Errorf("client: values of store %s: %w", name, err)
		}
	}
	return &Reader[K, V]{c: c, name: name, key: key, value: value}, nil
}

// In returns the reader in a session: its reads reflect what the session has seen, and the session sees what they read.
func (r *Reader[K, V]) In(s *Session) *Reader[K, V] {
	out := *r
	out.session = s
	return &out
}

// Result is the answer about one key.
type Result[V any] struct {
	Value V
	// Found says whether the store has the key; Value and Time are zero if not.
	Found bool
	// Time is the timestamp of the row.
	Time time.Time
	// Meta says what the answer was read from.
	Meta
}

// Get returns the value of a key, of a versioned store the latest, or that of AsOf.
func (r *Reader[K, V]) Get(ctx context.Context, key K, opts ...Option) (Result[V], error) {
	o := optionsOf(opts)
	ctx, cancel := r.c.bounded(ctx)
	defer cancel()
	k, st, err := r.begin(ctx, key)
	if err != nil {
		return Result[V]{}, err
	}
	out, err := r.c.Get(ctx, &apiv1.GetRequest{
		Store: r.name, RawKey: k, Partition: o.partition, AsOf: o.asOf, Raw: true,
		Consistency: o.consistency, MaxLag: o.maxLag, MinWatermark: o.minWatermark,
		Position: r.position(st, o, k),
	})
	missing := errors.Is(err, &query.Error{Reason: query.KeyNotFound})
	if err != nil && !missing {
		return Result[V]{}, err
	}
	m := out.GetMeta()
	if missing {
		m = MetaOf(err)
	}
	var res Result[V]
	if res.Meta, err = r.saw(m); err != nil || missing {
		return res, err
	}
	row, err := r.row(out.GetRow(), &res.Meta)
	if err != nil {
		return res, err
	}
	res.Value, res.Time, res.Found = row.Value, row.Time, true
	return res, nil
}

// begin encodes a key, and looks whether the store is one of such keys and values.
func (r *Reader[K, V]) begin(ctx context.Context, key K) ([]byte, *apiv1.Store, error) {
	k, err := r.encode(key)
	if err != nil {
		return nil, nil, err
	}
	st, err := r.look(ctx)
	return k, st, err
}

func (r *Reader[K, V]) encode(key K) ([]byte, error) {
	k, err := r.key.Append([]byte{}, key)
	if err != nil {
		return nil, &query.Error{Reason: query.KeyMalformed, Message: "the key cannot be encoded as " + r.key.Schema(), Store: r.name, Err: err}
	}
	return k, nil
}

// look returns what is known of the store. nil, if it is not among those that are known: the app says what there is to say.
func (r *Reader[K, V]) look(ctx context.Context) (*apiv1.Store, error) {
	st, err := r.c.describe(ctx, r.name)
	if err != nil || st == nil {
		return nil, err
	}
	if have := r.key.Schema(); have != st.KeySchema {
		return nil, &query.Error{Reason: query.KeyMalformed, Store: r.name,
			Message: fmt.Sprintf("the keys of store %s are %s, the reader's are %s: give Store the type or the codec of the app", r.name, st.KeySchema, have)}
	}
	if have := r.value.Schema(); !fits(have, st.ValueSchema) {
		return nil, &query.Error{Reason: query.InvalidRequest, Store: r.name,
			Message: fmt.Sprintf("the values of store %s are %s, the reader's are %s: give Store the type or the codec of the app", r.name, st.ValueSchema, have)}
	}
	return st, nil
}

// fits says whether a codec reads values of a schema. A reader of JSON may know fewer fields than the app has.
func fits(have, want string) bool {
	const json = "json:"
	return have == want || strings.HasPrefix(have, json) && strings.HasPrefix(want, json)
}

// position returns what an answer must reflect: what the options say, and what the session has seen of the tasks.
func (r *Reader[K, V]) position(st *apiv1.Store, o *options, key []byte) string {
	p := o.position
	if r.session != nil && st != nil {
		a := &atlas{stores: map[string]*apiv1.Store{r.name: st}}
		var partition *int32
		if t, ok := a.task(r.name, key, o.partition); ok {
			partition = &t.Partition
		}
		p = p.Merge(r.session.about(st.Sub, st.Topics, partition))
	}
	return p.String()
}

// saw reads the Meta of an answer, and tells the session.
func (r *Reader[K, V]) saw(m *apiv1.Meta) (Meta, error) {
	meta, err := metaOf(m)
	if err != nil {
		return meta, &query.Error{Reason: query.Failed, Message: "the position of an answer cannot be read", Store: r.name, Err: err}
	}
	if r.session != nil {
		r.session.Saw(meta.Position)
	}
	return meta, nil
}
