package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark/tidemark/processor"
)

// compiler builds one task: it turns the nodes of one sub-topology into closures, each node once.
type compiler struct {
	sub     *subgraph
	env     processor.Env
	b       *processor.Builder
	done    map[*node]any
	ops     map[*node]processor.Op
	clocks  map[*node]*processor.Clock
	times   map[*node]*processor.Node
	flushes []flush
	err     error
}

type flush struct {
	seq int
	f   func() error
}

// newTask builds the running form of a sub-topology.
func newTask(s *subgraph, env processor.Env) (*processor.Task, error) {
	if env.State == nil && len(s.stores) > 0 {
		return nil, fmt.Errorf("topology: sub-topology %s: build task: no state for its stores", s.id)
	}
	b := &compiler{sub: s, env: env, b: processor.NewBuilder(env), done: map[*node]any{}, ops: map[*node]processor.Op{}}
	b.makeClocks()
	for _, src := range s.sources {
		b.b.Source(src.read(b), b.clocks[src])
	}
	for _, n := range s.nodes {
		t := b.times[n]
		if t == nil {
			continue
		}
		b.b.Node(t)
		if n.cut {
			b.b.Announce(s.sinkIndex(n), t)
		}
	}
	// An operator is declared after its inputs, so the order of declaration is a topological one.
	slices.SortFunc(b.flushes, func(x, y flush) int { return cmp.Compare(x.seq, y.seq) })
	for _, f := range b.flushes {
		b.b.OnFlush(f.f)
	}
	task := b.b.Task()
	if b.err == nil {
		b.err = b.b.Restore()
	}
	if b.err != nil {
		return nil, cmp.Or(b.err, task.Close())
	}
	return task, nil
}

// fail keeps the first error of an operator that cannot be built.
func (b *compiler) fail(operator string, err error) {
	if b.err == nil {
		b.err = fmt.Errorf("topology: %s: build task: %w", operator, err)
	}
}

// op registers an operator with the task, once.
func (b *compiler) op(n *node) processor.Op {
	op, ok := b.ops[n]
	if !ok {
		op = b.b.Op(n.name())
		b.ops[n] = op
	}
	return op
}

// compiled returns the running form of a node.
func (b *compiler) compiled(n *node) any {
	f, ok := b.done[n]
	if !ok {
		f = n.compile(b)
		b.done[n] = f
	}
	return f
}

// streamOut returns what follows a node whose output is a stream.
func streamOut[K, V any](b *compiler, n *node) processor.Func[K, V] {
	var next []processor.Func[K, V]
	for _, c := range n.out {
		if c.kind == kindSide {
			continue // fed by its processor
		}
		if f, ok := b.compiled(c).(processor.Func[K, V]); ok {
			next = append(next, f)
		}
	}
	return processor.Fan(next)
}

// tableOut returns what follows a node whose output is a table, nil for nothing.
func tableOut[K, V any](b *compiler, n *node) processor.TableFunc[K, V] {
	var next []processor.TableFunc[K, V]
	for _, c := range n.out {
		next = append(next, b.compiled(c).(processor.TableFunc[K, V]))
	}
	return processor.TableFan(next)
}

// readTopic returns the entry of a source: of a topic, or of the repartition topic of a KeyBy.
func readTopic[K, V any](b *compiler, n *node, k *encoding[K], v *encoding[V]) processor.Source {
	kc, _ := k.get()
	vc, _ := v.get()
	s := processor.SourceConfig[K, V]{
		Op: b.op(n), Key: kc, Value: vc,
		NeedKey: n.wants.key || n.time.uses.key, NeedValue: n.wants.value || n.time.uses.value,
		Time: extractor[K, V](n), Clock: b.clocks[n],
		Marked: n.cut && n.retracting(), Origin: n.cut && n.origins,
	}
	streams := false
	for _, c := range n.out {
		if in, ok := b.compiled(c).(processor.TableInput[K, V]); ok {
			s.Tables = append(s.Tables, in)
		} else {
			streams = true
		}
	}
	if streams {
		s.Stream = streamOut[K, V](b, n)
	}
	return processor.NewSource(s)
}
