package topology

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// Shape returns what a later topology must fit to take over the state of this one.
func (p *Plan) Shape() Shape {
	s := Shape{Topology: p.Name, Fingerprint: p.StateFingerprint}
	for _, sub := range p.Subs {
		of := SubShape{ID: sub.ID, Operators: slices.Clone(sub.Operators)}
		for _, src := range sub.Sources {
			if src.Topic != "" {
				of.Topics = append(of.Topics, src.Topic)
			}
		}
		slices.Sort(of.Topics)
		s.Subs = append(s.Subs, of)
	}
	slices.SortFunc(s.Subs, func(a, b SubShape) int { return strings.Compare(a.ID, b.ID) })
	for _, n := range p.nodes {
		if o, ok := n.shape(); ok {
			s.Operators = append(s.Operators, o)
		}
	}
	slices.SortFunc(s.Operators, func(a, b OperatorShape) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// shape describes an operator that has state of its own.
func (n *node) shape() (OperatorShape, bool) {
	o := OperatorShape{ID: n.id, Kind: n.kind, Sub: n.sub.id}
	for _, d := range n.stores {
		if d.owner != n {
			continue
		}
		if spec := d.spec(); spec.Changelog {
			o.Stores = append(o.Stores, d.shape(spec))
		}
	}
	if n.cut {
		k, v := n.schemas()
		o.Repartition = &RepartitionShape{Key: k, Value: v, Partitions: n.partitions, Partitioner: partitioner}
	}
	if len(o.Stores) == 0 && o.Repartition == nil {
		return o, false
	}
	for _, i := range n.sub.sourcesOf(n) {
		o.Sources = append(o.Sources, topicLabel(n.sub.sources[i].topicOf()))
	}
	slices.Sort(o.Sources)
	return o, true
}

// shape describes a store.
func (d *storeDecl) shape(spec store.Spec) StoreShape {
	kind := spec.Kind
	if kind == 0 {
		kind = store.KeyValue
	}
	s := StoreShape{ID: spec.ID, Kind: kind.String(), Key: spec.KeySchema, Value: spec.ValueSchema}
	if d.valueSchema != nil {
		s.Value = d.valueSchema()
		s.Form = strings.TrimSpace(strings.TrimPrefix(spec.ValueSchema, s.Value))
	}
	for _, f := range d.describe {
		f(&s)
	}
	return s
}

// windowShape describes a window without its panes.
func windowShape(w window.Window) *WindowShape {
	s := &WindowShape{
		Kind: w.Kind().String(), Size: duration(w.Size()), Hop: duration(w.Hop()), Gap: duration(w.Gap()),
		Offset: duration(w.Shift()), ZoneRules: w.Rules(),
	}
	if loc := w.Location(); loc != nil {
		s.Zone = loc.String()
		s.Kind, _, _ = strings.Cut(w.String(), " in ") // a week has a first day
	}
	return s
}

// panesShape describes a window with its panes.
func panesShape(c window.Config) *WindowShape {
	s := windowShape(c.Window)
	s.Mode, s.Triggers = c.Mode.String(), c.Triggers()
	s.Lateness = "forever"
	if c.Lateness() < int64(window.Forever)/int64(time.Millisecond) {
		s.Lateness = cmp.Or(duration(c.Lateness()), "0s")
	}
	return s
}

// duration is a number of milliseconds in Go's notation, "" for none.
func duration(ms int64) string {
	if ms == 0 {
		return ""
	}
	return (time.Duration(ms) * time.Millisecond).String()
}
