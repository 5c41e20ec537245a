package topology

import (
	"slices"

	"github.com/tidemark/tidemark/processor"
)

// Merge joins streams of the same types into one. Order is kept within each. Their keys must be encoded the same way.
func (s *Stream[K, V]) Merge(others ...*Stream[K, V]) *Stream[K, V] {
	inputs := []*node{s.n}
	for _, o := range others {
		inputs = append(inputs, recode(s, o))
	}
	n := &node{kind: kindMerge, passesVal: true, passesKey: true, keyType: s.n.keyType, valueType: s.n.valueType}
	s.n.t.add(n, inputs...)
	for _, o := range others {
		n.checks = append(n.checks, func(p *problems) {
			if a, b := s.k.schema(), o.k.schema(); a != b {
				p.node(n, "keys of %s are encoded as %q, those of %s as %q", s.n.name(), a, o.n.name(), b)
			}
		})
	}
	n.compile = func(b *compiler) any { return streamOut[K, V](b, n) }
	return &Stream[K, V]{n, s.k, s.v}
}

// recode returns the node of o, behind one that drops the encoded value if its bytes are not those of s.
func recode[K, V any](s, o *Stream[K, V]) *node {
	if o.n.t != s.n.t || same(s.v, o.v) {
		return o.n
	}
	n := then(o, &node{kind: kindRecode, uses: uses{value: true}, passesVal: true})
	n.compile = func(b *compiler) any { return processor.Recode(streamOut[K, V](b, n)) }
	return n
}

// Split is a stream being split into branches. It must end with Otherwise or Drop.
type Split[K, V any] struct {
	s        *Stream[K, V]
	n        *node
	branches []branch[K, V]
	rest     *node
	ended    bool
}

type branch[K, V any] struct {
	n      *node
	accept func(c *Context, k K, v V) (bool, error)
}

// Split sends every record down the first branch that accepts it.
func (s *Stream[K, V]) Split() *Split[K, V] {
	p := &Split[K, V]{s: s}
	p.n = then(s, &node{kind: kindSplit, passesVal: true})
	p.n.checks = append(p.n.checks, func(out *problems) {
		if len(p.branches) == 0 {
			out.node(p.n, "a split without a branch")
		}
		if !p.ended {
			out.node(p.n, "records no branch accepts have nowhere to go: end the split with Otherwise or Drop")
		}
	})
	p.n.compile = func(b *compiler) any {
		var branches []processor.Branch[K, V]
		for _, br := range p.branches {
			branches = append(branches, processor.Branch[K, V]{
				Accept: br.accept, Op: b.op(br.n), Next: b.compiled(br.n).(processor.Func[K, V]),
			})
		}
		var rest processor.Func[K, V]
		if p.rest != nil {
			rest = b.compiled(p.rest).(processor.Func[K, V])
		}
		return processor.Split(branches, rest)
	}
	return p
}

// When adds a branch for the records pred accepts, and declares it in fn. Names are unique within the split.
func (p *Split[K, V]) When(name string, pred func(V) bool, fn func(*Stream[K, V])) *Split[K, V] {
	n := p.branch(name, uses{value: true}, fn)
	n.require(pred, "the predicate")
	accept := func(_ *Context, _ K, v V) (bool, error) { return pred(v), nil }
	p.branches = append(p.branches, branch[K, V]{n, accept})
	return p
}

// TryWhen is When with context, key and error.
func (p *Split[K, V]) TryWhen(name string, pred func(c *Context, k K, v V) (bool, error), fn func(*Stream[K, V])) *Split[K, V] {
	n := p.branch(name, uses{key: true, value: true}, fn)
	n.require(pred, "the predicate")
	p.branches = append(p.branches, branch[K, V]{n, pred})
	return p
}

// Otherwise declares what becomes of the records no branch accepts, and ends the split.
func (p *Split[K, V]) Otherwise(name string, fn func(*Stream[K, V])) {
	p.end()
	p.rest = p.branch(name, uses{}, fn)
}

// Drop drops and counts the records no branch accepts, and ends the split.
func (p *Split[K, V]) Drop() {
	p.end()
	p.n.detail = append(p.n.detail, "rest dropped")
}

func (p *Split[K, V]) end() {
	if p.ended {
		p.n.t.problems.node(p.n, "Otherwise and Drop end a split; one of them, once")
	}
	p.ended = true
}

func (p *Split[K, V]) branch(name string, u uses, fn func(*Stream[K, V])) *node {
	n := &node{
		kind: kindBranch, label: name, uses: u, passesVal: true, passesKey: true,
		keyType: p.n.keyType, valueType: p.n.valueType,
	}
	taken := slices.ContainsFunc(p.n.out, func(o *node) bool { return o.label == name })
	p.n.t.add(n, p.n)
	switch {
	case name == "":
		n.t.problems.node(n, "a branch of %s has no name", p.n.name())
	case taken:
		n.t.problems.node(n, "%s has two branches of this name", p.n.name())
	}
	n.compile = func(b *compiler) any { return streamOut[K, V](b, n) }
	n.require(fn, "the function that declares the branch")
	if fn != nil {
		fn(&Stream[K, V]{n, p.s.k, p.s.v})
	}
	return n
}
