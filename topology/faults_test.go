package topology_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tidemark/tidemark/topology"
)

// underFaults drives a topology beside a naive twin, with commits, aborts and restores at random. step does one thing to
// both and compares; a twin is copied at commits.
func underFaults[T any](t *testing.T, top *topology.Topology, steps int, fresh func() T, clone func(T) T, step func(d *driver, rng *rand.Rand, twin T)) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	d := start(t, top)
	now, saved, logs := fresh(), fresh(), map[string]changelog{}
	for i := range steps {
		switch n := rng.IntN(100); {
		case n < 4:
			d.commitTo(t, logs)
			saved = clone(now)
		case n < 6:
			d.abort(t)
			now = clone(saved)
		case n < 8:
			d.restore(t, logs)
			now = clone(saved)
		}
		step(d, rng, now)
		if t.Failed() {
			t.Fatalf("step %d, seed %d", i, seed)
		}
	}
}
