package store

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tidemark/tidemark/codec"
)

// wrapperOf returns the typed view of a store: make builds it over the rows of the store the first time it is asked for.
func wrapperOf[V any, W any](s *State, store string, kind Kind, c codec.Codec[V], build func(*View[V]) (*W, error)) (*W, error) {
	i := slices.IndexFunc(s.specs, func(spec Spec) bool { return spec.ID == store })
	if i < 0 {
		return nil, fmt.Errorf("store: view of %s: not declared", store)
	}
	if have := s.specs[i].Kind; have != kind {
		return nil, fmt.Errorf("store: view of %s: it is of kind %v, not %v", store, have, kind)
	}
	if s.wrappers[i] != nil {
		w, ok := s.wrappers[i].(*W)
		if !ok {
			return nil, fmt.Errorf("store: view of %s: it is a %T, not a %v", store, s.wrappers[i], reflect.TypeFor[*W]())
		}
		return w, nil
	}
	v, err := ViewOf(s, store, c)
	if err != nil {
		return nil, err
	}
	w, err := build(v)
	if err != nil {
		return nil, err
	}
	s.wrappers[i] = w
	return w, nil
}

// duesOf returns the rows of the due times of a store.
func duesOf(s *State, store int) (*View[nothing], error) {
	return ViewOf(s, s.specs[s.dues[store]].ID, codec.Codec[nothing](nothingCodec{}))
}

// nothing is the value of rows that are all key.
type nothing struct{}

type nothingCodec struct{}

func (nothingCodec) Append(dst []byte, _ nothing) ([]byte, error) { return dst, nil }
func (nothingCodec) Decode([]byte) (nothing, error)               { return nothing{}, nil }
func (nothingCodec) JSON(dst, _ []byte) ([]byte, error)           { return append(dst, "null"...), nil }
func (nothingCodec) Schema() string                               { return "nothing" }
