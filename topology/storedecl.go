package topology

import (
	"reflect"
	"strings"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
)

// storeDecl is a store of the topology. Its owner is the operator that declared it; all users run in one task.
type storeDecl struct {
	id          string
	owner       *node
	users       []*node           // the owner included
	spec        func() store.Spec // once codecs are resolved
	valueSchema func() string     // what the value schema begins with: that of the values alone. nil: all of it
	describe    []func(*StoreShape)
	key, value  reflect.Type
	encodings   any // storeEncodings of its types
	asked       queryable
	// open returns what a custom processor uses it through, for the one that owns it or another.
	open func(b *compiler, s *processor.Scope, owner bool) any
}

type storeEncodings[K, V any] struct {
	k *encoding[K]
	v *encoding[V]
}

// declare adds a key-value store that n owns.
func declare[K, V any](n *node, id string, k *encoding[K], v *encoding[V]) *storeDecl {
	needsKey(n, k)
	needs(n, v, "stored value")
	d := declareStore[K, V](n, id, storeEncodings[K, V]{k, v}, func() store.Spec {
		return store.Spec{ID: id, Kind: store.KeyValue, KeySchema: k.schema(), ValueSchema: v.schema(), Changelog: true}
	})
	d.valueSchema = v.schema
	d.open = func(b *compiler, s *processor.Scope, _ bool) any {
		w := view(b, id, v)
		kc, _ := k.get()
		vc, _ := v.get()
		return processor.NewKV(s, w, kc, vc)
	}
	return d
}

// versioned notes what is known of the version of the values, nil for none.
func (d *storeDecl) versioned(v *version) {
	if v == nil {
		return
	}
	d.describe = append(d.describe, v.describe)
	base := d.spec
	d.spec = func() store.Spec {
		s := base()
		rest := strings.TrimPrefix(s.ValueSchema, d.valueSchema())
		for _, schema := range v.older() {
			s.Older = append(s.Older, schema+rest)
		}
		return s
	}
}

// declareStore adds a store that n owns.
func declareStore[K, V any](n *node, id string, encodings any, spec func() store.Spec) *storeDecl {
	d := &storeDecl{
		id: id, owner: n, users: []*node{n},
		key: reflect.TypeFor[K](), value: reflect.TypeFor[V](), encodings: encodings, spec: spec,
	}
	n.t.stores = append(n.t.stores, d)
	n.stores = append(n.stores, d)
	return d
}

// use makes n a further user of a store.
func (d *storeDecl) use(n *node) {
	d.users = append(d.users, n)
	n.stores = append(n.stores, d)
}

// view opens a store of the task being built.
func view[V any](b *compiler, id string, v *encoding[V]) *store.View[V] {
	c, err := v.get()
	if err == nil {
		var w *store.View[V]
		if w, err = store.ViewOf(b.env.State, id, c); err == nil {
			return w
		}
	}
	b.fail(id, err)
	return nil
}
