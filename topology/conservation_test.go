package topology_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/window"
)

// In = folded + late, for every kind of window: each record counts once, however many windows take or refuse it, and
// what is counted as late is in the late topic.
func TestConservation(t *testing.T) {
	for _, w := range []window.Window{
		window.Tumbling(10 * ms), window.Hopping(10*ms, 5*ms), window.Hopping(10*ms, 3*ms), window.Hopping(5*ms, 10*ms),
		window.Cumulate(5*ms, 20*ms), window.Session(4 * ms), window.Global(),
	} {
		conserves(t, w, window.AllowedLateness(6*ms), window.Early(window.AfterCount(3)))
		conserves(t, w) // of which some are kept by slices
	}
}

func conserves(t *testing.T, w window.Window, opts ...window.Option) {
	t.Helper()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	d := windows(t, 2*ms, w, opts...)
	const records = 500
	late := 0
	for i := range records {
		time := 1000 + int64(i) - int64(rng.IntN(4)*rng.IntN(12))
		d.feeds(t, "in", at(time, fmt.Sprint("k", rng.IntN(3))))
		for _, s := range d.sent() {
			if strings.HasPrefix(s, "late ") {
				late++
			}
		}
		if i%30 == 29 {
			d.commits(t)
		}
	}
	c := d.counters("n")
	if refused := c.Late[0] + c.Late[1]; c.In != records || c.Folded+refused != records || int(refused) != late {
		t.Errorf("seed %d: %v: in %d, folded %d, late %d, in the late topic %d", seed, w, c.In, c.Folded, refused, late)
	}
	if late == 0 && w.Kind() != window.KindGlobal {
		t.Errorf("seed %d: %v: nothing is late, the test shows nothing", seed, w)
	}
}
