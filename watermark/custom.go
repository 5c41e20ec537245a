package watermark

import "fmt"

// custom keeps the promise that W never falls for a generator that may not.
type custom struct {
	position
	name string
	g    Generator
}

func (g *custom) Observe(r *Record) {
	g.g.Observe(r)
	g.w = max(g.w, g.g.Watermark())
}

func (g *custom) Watermark() int64 { return g.w }

func (g *custom) Append(dst []byte) []byte { return g.g.Append(g.append(dst)) }

// Restore leaves the generator as new when there is no state of its own: the
// position then comes from another strategy, or the state is the empty one.
func (g *custom) Restore(b []byte) error {
	rest, err := g.restore(b)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		if err := g.g.Restore(rest); err != nil {
			return fmt.Errorf("watermark: restore %s: %w", g.name, err)
		}
	}
	g.w = max(g.w, g.g.Watermark())
	return nil
}
