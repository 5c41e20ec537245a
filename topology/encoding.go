package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/codec"
)

// encoding is the codec a stream's keys or values would be written with: the one that was given, which travels with
// the stream for as long as the type stays, else the type's default, looked up when it is first needed.
type encoding[T any] struct {
	codec    codec.Codec[T]
	explicit bool
	wrap     func() (codec.Codec[T], error) // makes the codec, if it is made of another one
	err      error
}

// encode returns the encoding of a codec, of the default one if it is nil.
func encode[T any](c codec.Codec[T]) *encoding[T] { return &encoding[T]{codec: c, explicit: c != nil} }

// get returns the codec or why there is none.
func (e *encoding[T]) get() (codec.Codec[T], error) {
	if e.codec == nil && e.err == nil && e.wrap != nil {
		e.codec, e.err = e.wrap()
	}
	if e.codec == nil && e.err == nil {
		e.codec, e.err = codec.For[T]()
	}
	return e.codec, e.err
}

func (e *encoding[T]) schema() string {
	if c, err := e.get(); err == nil {
		return c.Schema()
	}
	return ""
}

// retype carries an explicit codec over to R if R is the type it is for.
func retype[R, V any](e *encoding[V]) *encoding[R] {
	if same, ok := any(e).(*encoding[R]); ok {
		return same
	}
	return encode[R](nil)
}

// needs makes Build resolve a codec and report a type that has none.
func needs[T any](n *node, e *encoding[T], what string) {
	n.checks = append(n.checks, func(p *problems) {
		if _, err := e.get(); err != nil {
			p.add(n.seq, n.name(), err, "no codec for the %s", what)
		}
	})
}

// needsKey is needs for a key, whose type must also be fit for one.
func needsKey[K any](n *node, e *encoding[K]) {
	needs(n, e, "key")
	n.checks = append(n.checks, func(p *problems) {
		if err := codec.KeySafe[K](); err != nil {
			p.add(n.seq, n.name(), err, "the key type is not fit for a key")
		}
	})
}

// sameCodec reports whether two codecs are the same value, so that bytes of one can be taken for bytes of the other.
func sameCodec[T any](a, b codec.Codec[T]) bool {
	if a == nil || b == nil {
		return false
	}
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t.Comparable() && a == b
}
