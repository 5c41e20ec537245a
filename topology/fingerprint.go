package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// fingerprintVersion changes when the text that is hashed does.
const fingerprintVersion = "tidemark topology 1\n"

// digest returns 128 bits of a text's hash, in hex.
func digest(text string) string {
	sum := sha256.Sum256([]byte(fingerprintVersion + text))
	return hex.EncodeToString(sum[:16])
}

// fingerprint fills in the operators of a plan and all fingerprints.
func fingerprint(p *Plan, subs []*subgraph) {
	for _, n := range p.nodes {
		op := Operator{Name: n.name(), ID: n.id, Kind: n.kind, Sub: n.sub.id, BuildFingerprint: digest(n.line())}
		if lines := n.stateLines(); len(lines) > 0 {
			op.StateFingerprint = digest(strings.Join(lines, "\n"))
		}
		p.Operators = append(p.Operators, op)
	}
	var state, build strings.Builder
	for _, s := range subs {
		fmt.Fprintf(&state, "sub %s\n", s.id)
		var lines []string
		for _, src := range s.sources {
			if src.kind == kindSource {
				k, v := src.schemas()
				lines = append(lines, fmt.Sprintf("topic %s %q %q", src.label, k, v))
			} else {
				lines = append(lines, src.stateLines()...)
			}
		}
		for _, n := range s.nodes {
			if !n.cut { // counted where it is read
				lines = append(lines, n.stateLines()...)
			}
		}
		for _, k := range s.sinks {
			if k.cut {
				lines = append(lines, "cut "+k.id)
			}
		}
		slices.Sort(lines)
		state.WriteString(strings.Join(lines, "\n") + "\n")
	}
	for _, n := range p.nodes {
		fmt.Fprintf(&build, "%s\n", n.line())
	}
	p.StateFingerprint = digest(state.String())
	p.BuildFingerprint = digest(state.String() + build.String())
}

// stateLines describes what of an operator outlives the process: its stores and its repartition topic.
func (n *node) stateLines() []string {
	var lines []string
	for _, d := range n.stores {
		s := d.spec()
		verb := "store"
		if d.owner != n {
			verb = "uses store"
		}
		lines = append(lines, fmt.Sprintf("%s %s of %s %s: %v %q %q changelog %t",
			verb, s.ID, n.kind, n.id, s.Kind, s.KeySchema, s.ValueSchema, s.Changelog))
		if s := d.shape(s); s.TTL != nil && s.TTL.Clock != "event time" {
			lines[len(lines)-1] += " by the clock"
		}
	}
	if n.cut {
		k, v := n.schemas()
		lines = append(lines, fmt.Sprintf("repartition %s %q %q partitions %d", n.id, k, v, n.partitions))
	}
	return lines
}

// line describes all of an operator but what its functions do.
func (n *node) line() string {
	var b strings.Builder
	b.WriteString(n.name())
	if n.id != "" {
		b.Reset()
		fmt.Fprintf(&b, "%s %s", n.kind, n.id)
	}
	for _, in := range n.in {
		fmt.Fprintf(&b, " <- %s", in.name())
	}
	if n.keyType != nil {
		fmt.Fprintf(&b, ": %v, %v", n.keyType, n.valueType)
	}
	if n.schemas != nil && (n.kind != kindKeyBy || n.cut) {
		k, v := n.schemas()
		fmt.Fprintf(&b, " as %s, %s", k, v)
	}
	if n.cut {
		fmt.Fprint(&b, " cut")
		if n.partitions > 0 {
			fmt.Fprintf(&b, " partitions=%d", n.partitions)
		}
	}
	for _, d := range n.stores {
		fmt.Fprintf(&b, " store=%s", d.id)
	}
	for _, d := range n.detail {
		fmt.Fprintf(&b, " (%s)", d)
	}
	return b.String()
}
