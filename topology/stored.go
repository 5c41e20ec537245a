package topology

import (
	"fmt"

	"github.com/tidemark/tidemark/codec"
)

// Stored is what keeps rows that can be asked while the app runs: a table that has a store, an aggregate over windows, and
// the handles of the stores of custom processors.
type Stored[K, V any] interface {
	// Stored returns the id of the store and the codecs of its keys and values. The error says what has no store.
	Stored() (id string, key codec.Codec[K], value codec.Codec[V], err error)
}

// Stored implements the interface. A table made by Filter or Map has no store of its own.
func (t *Table[K, V]) Stored() (string, codec.Codec[K], codec.Codec[V], error) {
	return storedBy[K, V](t.n)
}

// Stored implements the interface. Panes made by Filter have the store of the aggregate no more.
func (p *Panes[K, A]) Stored() (string, codec.Codec[K], codec.Codec[A], error) {
	return storedBy[K, A](p.n)
}

// Stored implements the interface for all handles.
func (h *storeHandle[K, V]) Stored() (string, codec.Codec[K], codec.Codec[V], error) {
	if h.decl == nil {
		return "", nil, nil, fmt.Errorf("topology: store %s is listed by no processor", h.id)
	}
	return storeOf[K, V](h.decl)
}

func storedBy[K, V any](n *node) (string, codec.Codec[K], codec.Codec[V], error) {
	for _, d := range n.stores {
		if d.owner == n && d.id == n.id {
			return storeOf[K, V](d)
		}
	}
	return "", nil, nil, fmt.Errorf("topology: %s keeps no rows: ask the table or aggregate it is made from", n.name())
}

func storeOf[K, V any](d *storeDecl) (string, codec.Codec[K], codec.Codec[V], error) {
	e, ok := d.encodings.(storeEncodings[K, V])
	if !ok {
		return "", nil, nil, fmt.Errorf("topology: store %s is for its operator only", d.id)
	}
	k, err := e.k.get()
	if err != nil {
		return "", nil, nil, err
	}
	v, err := e.v.get()
	return d.id, k, v, err
}
