package store

import (
	"errors"
	"fmt"
	"math"

	"github.com/tidemark/tidemark/codec"
)

// VersionedView is the typed form of a store with a history: per key the values it had, each valid from its time up to
// that of the next one.
type VersionedView[V any] struct {
	v   *View[version[V]]
	buf []byte
	lo  []byte
}

// version is a value, or the fact that there is none from its time on.
type version[V any] struct {
	value V
	null  bool
}

const (
	versionNull  = 0
	versionValue = 1
)

// versionCodec puts versionNull or versionValue before the value.
type versionCodec[V any] struct{ codec.Codec[V] }

func (c versionCodec[V]) Append(dst []byte, x version[V]) ([]byte, error) {
	if x.null {
		return append(dst, versionNull), nil
	}
	return c.Codec.Append(append(dst, versionValue), x.value)
}

func (c versionCodec[V]) Decode(b []byte) (x version[V], err error) {
	if len(b) == 0 || b[0] > versionValue {
		return x, fmt.Errorf("%w: version of %d bytes", ErrCorrupt, len(b))
	}
	if x.null = b[0] == versionNull; !x.null {
		x.value, err = c.Codec.Decode(b[1:])
	}
	return x, err
}

func (c versionCodec[V]) Aliases() bool { return aliases(c.Codec) }

// VersionedViewOf returns the view of a store of kind Versioned. It is the same view on every call for one State.
func VersionedViewOf[V any](s *State, store string, c codec.Codec[V]) (*VersionedView[V], error) {
	return wrapperOf(s, store, Versioned, codec.Codec[version[V]](versionCodec[V]{c}), func(v *View[version[V]]) (*VersionedView[V], error) {
		return &VersionedView[V]{v: v}, nil
	})
}

// Put adds a version that is valid from t on. horizon is the time before which history is given up: Put reports false,
// and does nothing, if t < horizon, and drops the versions of the key that were replaced at or before it. It reads the
// key's history, by a scan.
func (v *VersionedView[V]) Put(key []byte, val V, t, horizon int64) (ok bool, err error) {
	x := version[V]{value: val}
	if n, is := v.v.codec.(versionCodec[V]).Codec.(codec.Nullable[V]); is && n.IsNull(val) {
		x = version[V]{null: true}
	}
	return v.put(key, x, t, horizon)
}

// Delete says that key has no value from t on, as Put does.
func (v *VersionedView[V]) Delete(key []byte, t, horizon int64) (ok bool, err error) {
	return v.put(key, version[V]{null: true}, t, horizon)
}

func (v *VersionedView[V]) put(key []byte, x version[V], t, horizon int64) (ok bool, err error) {
	if t < horizon {
		return false, nil
	}
	v.buf = AppendVersionKey(v.buf[:0], key, t)
	if err := v.v.Put(v.buf, x, t); err != nil {
		return false, err
	}
	if horizon == math.MinInt64 {
		return true, nil
	}
	// The version valid at the horizon stays.
	var old [][]byte
	err = v.scan(key, horizon, func(c *Cursor[version[V]], _ int64) (bool, error) {
		old = append(old, append([]byte(nil), c.Key()...))
		return true, nil
	})
	for n := 1; n < len(old) && err == nil; n++ {
		err = v.v.Delete(old[n], horizon)
	}
	return err == nil, err
}

// scan calls fn for the versions valid from t or earlier, latest first, until it returns false.
func (v *VersionedView[V]) scan(key []byte, t int64, fn func(c *Cursor[version[V]], from int64) (bool, error)) error {
	v.lo = AppendVersionKey(v.lo[:0], key, t)
	prefix := v.lo[:len(v.lo)-8]
	c, err := v.v.Scan(v.lo, Successor(prefix))
	if err != nil {
		return err
	}
	for c.Next() {
		_, from, ok := ParseVersionKey(c.Key())
		if !ok {
			return errors.Join(fmt.Errorf("store: %s: row %q: %w", v.v.id(), c.Key(), ErrCorrupt), c.Close())
		}
		if more, err := fn(c, from); err != nil || !more {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}

// Get returns the latest version and the time from which it is valid.
func (v *VersionedView[V]) Get(key []byte) (val V, from int64, ok bool, err error) {
	return v.GetAsOf(key, math.MaxInt64)
}

// GetAsOf returns the version that is valid at t and the time from which it is valid.
func (v *VersionedView[V]) GetAsOf(key []byte, t int64) (val V, from int64, ok bool, err error) {
	err = v.scan(key, t, func(c *Cursor[version[V]], at int64) (bool, error) {
		x, err := c.Value()
		val, from, ok = x.value, at, err == nil && !x.null
		return false, err
	})
	return val, from, ok, err
}

// History calls fn for the versions of key valid from t or earlier, latest first, until it returns false. exists is false
// where there is no value from then on.
func (v *VersionedView[V]) History(key []byte, t int64, fn func(val V, from int64, exists bool) bool) error {
	return v.scan(key, t, func(c *Cursor[version[V]], from int64) (bool, error) {
		x, err := c.Value()
		return err == nil && fn(x.value, from, !x.null), err
	})
}
