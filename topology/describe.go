package topology

import (
	"fmt"
	"strings"
)

// Describe returns the plan as text, for people and for golden files: the same plan always gives the same text.
func (p *Plan) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "topology %s\n", p.Name)
	for _, s := range p.Subs {
		fmt.Fprintf(&b, "\nsub-topology %s\n", s.ID)
		for _, src := range s.Sources {
			fmt.Fprintf(&b, "  reads  %s\n", topicLabel(src.Topic, src.Repartition))
		}
		for _, k := range s.Sinks {
			fmt.Fprintf(&b, "  writes %s\n", topicLabel(k.Topic, k.Repartition))
		}
		for _, st := range s.Stores {
			fmt.Fprintf(&b, "  store  %s: %v %s, %s%s\n", st.ID, st.Kind, st.KeySchema, st.ValueSchema,
				map[bool]string{true: ", changelog"}[st.Changelog])
		}
		for _, n := range p.nodes {
			if n.sub.id == s.ID {
				fmt.Fprintf(&b, "  %s\n", n.line())
			}
		}
	}
	return b.String()
}

func topicLabel(topic, repartition string) string {
	if repartition != "" {
		return "repartition " + repartition
	}
	return "topic " + topic
}

// Mermaid returns the plan as a Mermaid flowchart.
func (p *Plan) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	topics := map[string]string{}
	topicNode := func(topic, repartition string) string {
		label := topicLabel(topic, repartition)
		id, ok := topics[label]
		if !ok {
			id = fmt.Sprintf("t%d", len(topics)+1)
			topics[label] = id
			fmt.Fprintf(&b, "  %s[(\"%s\")]\n", id, label)
		}
		return id
	}
	for _, n := range p.nodes {
		if n.kind == kindSource || n.kind == kindSink || n.cut {
			topicNode(n.topicOf())
		}
	}
	for i, s := range p.Subs {
		fmt.Fprintf(&b, "  subgraph s%d [\"%s\"]\n", i+1, s.ID)
		for _, n := range p.nodes {
			if n.sub.id == s.ID && n.kind != kindSource && n.kind != kindSink {
				fmt.Fprintf(&b, "    n%d[\"%s\"]\n", n.seq, mermaidLabel(n))
			}
		}
		b.WriteString("  end\n")
	}
	at := func(n *node) string {
		if n.kind == kindSource || n.cut {
			return topicNode(n.topicOf())
		}
		return fmt.Sprintf("n%d", n.seq)
	}
	for _, n := range p.nodes {
		to := fmt.Sprintf("n%d", n.seq)
		if n.kind == kindSink {
			to = topicNode(n.topicOf())
		}
		for _, in := range n.in {
			fmt.Fprintf(&b, "  %s --> %s\n", at(in), to)
		}
		if n.cut {
			fmt.Fprintf(&b, "  n%d --> %s\n", n.seq, topicNode(n.topicOf()))
		}
	}
	return b.String()
}

func mermaidLabel(n *node) string {
	label := n.name()
	if n.id != "" {
		label = n.kind + " " + n.id
	}
	if len(n.stores) > 0 && n.kind == kindProcess {
		var ids []string
		for _, d := range n.stores {
			ids = append(ids, d.id)
		}
		label += "<br/>" + strings.Join(ids, ", ")
	}
	return strings.ReplaceAll(label, "#", "#35;")
}
