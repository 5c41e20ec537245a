package topology

import (
	"fmt"
	"reflect"

	"github.com/tidemark/tidemark/processor"
)

// Kinds of nodes, as descriptions print them.
const (
	kindSource    = "source"
	kindTable     = "table"
	kindFilter    = "filter"
	kindMap       = "map"
	kindFlatMap   = "flat-map"
	kindPeek      = "peek"
	kindMerge     = "merge"
	kindRecode    = "recode"
	kindSplit     = "split"
	kindBranch    = "branch"
	kindKeyBy     = "key-by"
	kindCount     = "count"
	kindSum       = "sum"
	kindMin       = "min"
	kindMax       = "max"
	kindReduce    = "reduce"
	kindAggregate = "aggregate"
	kindProcess   = "process"
	kindSide      = "side"
	kindToStream  = "to-stream"
	kindChanges   = "changes"
	kindSink      = "sink"

	kindPaneMap    = "pane-map"
	kindPaneFilter = "pane-filter"
	kindPanePeek   = "pane-peek"
	kindDedup      = "dedup"
)

// node is one operator of the graph, without its types. A KeyBy that cuts is one node with two halves: its function
// and the write run where its input does, the read and its children in another sub-topology.
type node struct {
	t    *Topology
	seq  int // order of declaration; inputs always have a smaller one
	kind string
	id   string // operator id, "" for operators without one
	// label is the topic of a source or sink, the name of a branch or side output, else the number among its kind.
	label   string
	detail  []string // more for descriptions and the build fingerprint
	in, out []*node

	uses       uses // what its function needs of its input
	passesKey  bool // its output's key is its input's
	passesVal  bool
	passesOld  bool
	stateful   bool // needs its input partitioned by the key in hand
	changesKey bool // a processor that may emit under other keys

	pre   *preAggregation // of a KeyBy whose records are combined first
	time  timing          // of a source
	timed bool            // it asks for the time: a window, timers, a horizon
	ticks bool            // it does something when processing time passes
	asked bool            // it or something behind it does; a result of Build
	// origins says that it or something behind it judges lateness by the source\'s watermark; settled by Build as well.
	origins  bool
	sessions bool // its windows are sessions
	holds    bool // it may hold its watermark back
	// retracts says that its results come with retractions of earlier ones; what follows passes them on up to a topic.
	retracts bool

	partitions int          // declared for a KeyBy; 0: derived
	stores     []*storeDecl // stores it uses
	keyType    reflect.Type // of its output
	valueType  reflect.Type
	schemas    func() (key, value string) // of its topic or repartition, once codecs are resolved
	shared     any                        // sourceEncodings of a source, for the next reader of its topic
	custom     *custom                    // of a processor

	checks []func(*problems) // run by Build, before anything else
	late   []func(*problems) // run by Build once all stores are known, before cuts
	atCut  func(*problems)   // run by Build for a KeyBy that cuts

	// compile returns the operator's running form: processor.Func, processor.TableFunc or processor.TableInput of the
	// input's types.
	compile func(*compiler) any
	read    func(*compiler) processor.Source // of sources and of KeyBys that cut

	// Results of Build.
	cut         bool
	needs       uses // what its input must bring: its own uses and those of what follows
	wants       uses // what its output must bring
	sub, behind *subgraph
}

// uses says which typed parts of a record are used.
type uses struct{ key, value, old bool }

func (u uses) or(v uses) uses { return uses{u.key || v.key, u.value || v.value, u.old || v.old} }

// name is how errors and descriptions call the node.
func (n *node) name() string {
	switch {
	case n.id != "":
		return n.id
	case n.labelled():
		return n.kind + "(" + n.label + ")"
	}
	return n.kind + "#" + n.label
}

// retracting reports whether the node's output takes results back: it does so itself, or its input does and it is no
// aggregate, whose output is made anew.
func (n *node) retracting() bool {
	if n.retracts {
		return true
	}
	if n.kind == kindSource || len(n.stores) > 0 && n.kind != kindProcess {
		return false
	}
	for _, in := range n.in {
		if in.retracting() {
			return true
		}
	}
	return false
}

// labelled reports whether the label was given by the user.
func (n *node) labelled() bool {
	return n.kind == kindSource || n.kind == kindSink || n.kind == kindBranch || n.kind == kindSide
}

// add puts a new node into the graph, below its inputs.
func (t *Topology) add(n *node, in ...*node) *node {
	n.t = t
	n.seq = len(t.nodes) + 1
	if !n.labelled() {
		t.numbers[n.kind]++
		n.label = fmt.Sprint(t.numbers[n.kind])
	}
	if t.built {
		t.problems.node(n, "declared after Build")
		return n
	}
	t.nodes = append(t.nodes, n)
	n.in = in
	for _, p := range in {
		if p.t != t {
			t.problems.node(n, "continues a stream or table of another topology, %q", p.t.name)
			continue
		}
		p.out = append(p.out, n)
	}
	return n
}

// claim is the owner of an operator id.
type claim struct{ id, kind string }

// claimID checks an operator id and registers it for n.
func (t *Topology) claimID(n *node, id, kind string) {
	if why := badID(id); why != "" {
		t.problems.node(n, "operator id %q %s", id, why)
		return
	}
	first, taken := t.ids[fold(id)]
	switch {
	case !taken:
		t.ids[fold(id)] = claim{id, kind}
	case first.id == id:
		t.problems.node(n, "duplicate id: a %s and a %s are both called %q", first.kind, kind, id)
	default:
		t.problems.node(n, "id %q collides with %q: Kafka takes names that differ only in '.' and '_' for the same", id, first.id)
	}
}

// require reports a nil function.
func (n *node) require(f any, what string) {
	if v := reflect.ValueOf(f); !v.IsValid() || v.IsNil() {
		n.t.problems.node(n, "%s is nil", what)
	}
}
