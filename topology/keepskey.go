package topology

import (
	"reflect"

	"github.com/tidemark/tidemark/codec"
)

// KeepsKey promises that a processor emits each record under the key of the record it got, so that a stateful operator
// may follow without a KeyBy. A record that breaks the promise fails.
func KeepsKey() Handle { return keepsKey{} }

type keepsKey struct{}

func (keepsKey) attach(n *node) {
	n.custom.keeps, n.changesKey = true, false
	n.detail = append(n.detail, "keeps the key")
}

// keepsKeyOf checks that the promise can be kept: the key must be encoded alike on both sides.
func keepsKeyOf[K, K2 any](p *problems, n *node, in *encoding[K], out *encoding[K2]) {
	a, err := in.get()
	b, err2 := out.get()
	if err != nil || err2 != nil {
		return // reported elsewhere
	}
	if _, ok := any(a).(codec.Codec[K2]); !ok || a.Schema() != b.Schema() {
		p.node(n, "promises to keep keys, but takes %v and emits %v", reflect.TypeFor[K](), reflect.TypeFor[K2]())
	}
}
