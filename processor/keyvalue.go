package processor

import (
	"errors"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

// KV is a key-value store as one custom processor of one task uses it.
type KV[K, V any] struct {
	scope *Scope
	rows  rows[V]
	key   codec.Codec[K]
	null  codec.Nullable[V]
	buf   []byte
}

// NewKV returns the access of a processor to a view.
func NewKV[K, V any](s *Scope, view *store.View[V], key codec.Codec[K], value codec.Codec[V]) *KV[K, V] {
	return &KV[K, V]{scope: s, rows: plainRows[V]{view}, key: key, null: nullOf(value)}
}

// rows are the rows of a store by encoded key.
type rows[V any] interface {
	Get(key []byte) (V, bool, error)
	Put(key []byte, v V, time int64) error
	Delete(key []byte, time int64) error
	// each calls fn for the rows from lo up to hi until it returns false. Keys are fn's for the call.
	each(lo, hi []byte, fn func(key []byte, v V) (bool, error)) error
}

type plainRows[V any] struct{ *store.View[V] }

func (r plainRows[V]) each(lo, hi []byte, fn func(key []byte, v V) (bool, error)) error {
	rows, err := r.Scan(lo, hi)
	if err != nil {
		return err
	}
	for rows.Next() {
		v, err := rows.Value()
		more := false
		if err == nil {
			more, err = fn(rows.Key(), v)
		}
		if err != nil || !more {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (s *KV[K, V]) encode(k K) ([]byte, error) {
	b, err := s.key.Append(s.buf[:0], k)
	if err != nil {
		return nil, s.scope.c.fail(s.scope.op, StageEncode, err)
	}
	s.buf = b
	return b, nil
}

// Get returns the value of a key and whether there is one.
func (s *KV[K, V]) Get(k K) (V, bool, error) {
	var v V
	key, err := s.encode(k)
	if err != nil {
		return v, false, err
	}
	v, ok, err := s.rows.Get(key)
	if err != nil {
		return v, false, s.scope.c.stateError(s.scope.op, err)
	}
	return v, ok, nil
}

// Put sets the value of a key, with the timestamp in hand. A value that stands for null deletes the key.
func (s *KV[K, V]) Put(k K, v V) error {
	if s.null != nil && s.null.IsNull(v) {
		return s.Delete(k)
	}
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	s.scope.c.effects++
	if err := s.rows.Put(key, v, s.scope.c.time); err != nil {
		return s.scope.c.stateError(s.scope.op, err)
	}
	return nil
}

// Delete removes a key.
func (s *KV[K, V]) Delete(k K) error {
	key, err := s.encode(k)
	if err != nil {
		return err
	}
	s.scope.c.effects++
	if err := s.rows.Delete(key, s.scope.c.time); err != nil {
		return s.scope.c.stateError(s.scope.op, err)
	}
	return nil
}

// Scan calls fn for the rows from from on up to and without to, ordered by encoded key, until fn returns false. A nil
// bound is open.
func (s *KV[K, V]) Scan(from, to *K, fn func(K, V) bool) error {
	c, op := s.scope.c, s.scope.op
	lo, err := s.bound(from)
	if err != nil {
		return err
	}
	hi, err := s.bound(to)
	if err != nil {
		return err
	}
	err = s.rows.each(lo, hi, func(key []byte, v V) (bool, error) {
		// A decoded key may share memory with its bytes, which the cursor reuses.
		k, err := s.key.Decode(append([]byte(nil), key...))
		return err == nil && fn(k, v), err
	})
	if err != nil {
		return c.stateError(op, err)
	}
	return nil
}

// bound encodes one end of a scan into memory of its own.
func (s *KV[K, V]) bound(k *K) ([]byte, error) {
	if k == nil {
		return nil, nil
	}
	b, err := s.key.Append(nil, *k)
	if err != nil {
		return nil, s.scope.c.fail(s.scope.op, StageEncode, err)
	}
	return nonNil(b), nil
}
