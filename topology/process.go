package topology

import (
	"errors"
	"reflect"

	"github.com/tidemark/tidemark/processor"
)

// Record is one record as a custom processor sees it.
type Record[K, V any] = processor.Message[K, V]

// Emitter is how a custom processor emits.
type Emitter[K, V any] = processor.Emitter[K, V]

// Processor is a custom operator with a life of its own, see ProcessWith.
type Processor[K, V, K2, V2 any] = processor.Processor[K, V, K2, V2]

// Processed is the main output of a custom processor, a stream like any other, with its side outputs.
type Processed[K, V any] struct{ *Stream[K, V] }

// Side continues a side output of the processor.
func (p *Processed[K, V]) Side[K2, V2 any](out *SideOutput[K2, V2]) *Stream[K2, V2] {
	if out == nil || out.n == nil || out.n.in[0] != p.n {
		name := "nil"
		if out != nil {
			name = out.name
		}
		p.n.t.problems.node(p.n, "output %q is not listed", name)
		stray := p.n.t.add(&node{kind: kindSide, label: name, keyType: reflect.TypeFor[K2](), valueType: reflect.TypeFor[V2]()}, p.n)
		return &Stream[K2, V2]{stray, encode[K2](nil), encode[V2](nil)}
	}
	return &Stream[K2, V2]{out.n, out.k, out.v}
}

// Process runs fn for every record. It may use the stores listed, and emit any number of records, under any keys: a
// stateful operator behind it needs a KeyBy between, unless KeepsKey is listed. A processor with stores makes a KeyBy
// before it a cut and refuses records without a key.
func (s *Stream[K, V]) Process[K2, V2 any](id string, fn func(out Emitter[K2, V2], r Record[K, V]) error, handles ...Handle) *Processed[K2, V2] {
	p := process(s, id, func() Processor[K, V, K2, V2] {
		return processor.ProcessorFunc[K, V, K2, V2](fn)
	}, handles)
	p.n.require(fn, "the function")
	if m := p.n.custom.methods; m != "" {
		p.n.t.problems.node(p.n, "%s call a method, which a function does not have: use ProcessWith", m)
	}
	return p
}

// ProcessWith is Process for a processor with a life of its own: make is called once per task, also after an abort.
// What it keeps in memory is lost then; what must survive belongs into a store. Timers and Every call further methods of
// the processor.
func (s *Stream[K, V]) ProcessWith[K2, V2 any](id string, make func() Processor[K, V, K2, V2], handles ...Handle) *Processed[K2, V2] {
	p := process(s, id, make, handles)
	p.n.require(make, "the function that makes processors")
	return p
}

var errNilProcessor = errors.New("the function that makes processors returned nil")

func process[K, V, K2, V2 any](s *Stream[K, V], id string, make func() Processor[K, V, K2, V2], handles []Handle) *Processed[K2, V2] {
	n := s.n.t.add(&node{
		kind: kindProcess, id: id, uses: uses{key: true, value: true}, changesKey: true,
		keyType: reflect.TypeFor[K2](), valueType: reflect.TypeFor[V2](), custom: &custom{key: s.k},
	}, s.n)
	n.t.claimID(n, id, n.kind)
	for _, h := range handles {
		if h == nil || reflect.ValueOf(h).Kind() == reflect.Pointer && reflect.ValueOf(h).IsNil() {
			n.t.problems.node(n, "a handle is nil")
			continue
		}
		h.attach(n)
	}
	k := retype[K2](s.k)
	needs(n, k, "key")
	if n.custom.keeps {
		n.checks = append(n.checks, func(p *problems) { keepsKeyOf(p, n, s.k, k) })
	}
	n.compile = func(b *compiler) any {
		scope := processor.NewScope(b.b, b.op(n), b.times[n], n.t.handles)
		for _, fill := range n.custom.slots {
			fill(b, scope)
		}
		c := processor.CustomConfig[K, V, K2, V2]{
			Scope: scope, Processor: make(), Keyed: n.custom.keyed,
			Out: newPort(b, scope, n, n, k, streamOut[K2, V2](b, n)),
		}
		c.Key, _ = s.k.get()
		if c.Processor == nil {
			b.fail(n.name(), errNilProcessor)
			return processor.Func[K, V](nil)
		}
		if err := processor.Manage(b.b, c.Processor); err != nil {
			b.fail(n.name(), err)
		}
		run, err := processor.Custom(b.b, c)
		if err != nil {
			b.fail(n.name(), err)
		}
		return run
	}
	return &Processed[K2, V2]{&Stream[K2, V2]{n, k, retype[V2](s.v)}}
}

// TaskID names a task: what a Processor's Open gets.
type TaskID = processor.TaskID
