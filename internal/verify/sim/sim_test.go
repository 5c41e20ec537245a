package sim_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tidemark/tidemark/internal/invariants"
	"github.com/tidemark/tidemark/internal/verify/sim"
)

var (
	first = flag.Uint64("first", 1, "first seed")
	seeds = flag.Int("seeds", defaultSeeds(), "number of seeds")
	logs  = flag.Bool("logs", false, "print the log of every simulation")
)

// defaultSeeds is what the test command runs: 200, and a few with the race detector, which takes many times as
// long and shows what it shows within the first ones.
func defaultSeeds() int {
	if invariants.Enabled {
		return 10
	}
	return 200
}

// play runs a script in a world of its own.
func play(t *testing.T, s sim.Settings, script func(*sim.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := sim.New(s)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		script(w)
		if r := w.Finish(); !r.OK() {
			t.Errorf("%v: %s\n%s\n%s", s, r, r.Explain(), w.Log())
		}
	})
}

func TestSeeds(t *testing.T) {
	for i := range *seeds {
		s := sim.Draw(*first + uint64(i))
		t.Run(fmt.Sprint(s.Seed), func(t *testing.T) {
			t.Parallel()
			s.Echo = *logs
			play(t, s, (*sim.World).Random)
		})
	}
}

func TestScenes(t *testing.T) {
	for _, s := range sim.Scenes() {
		t.Run(s.Name, func(t *testing.T) {
			set := sim.SceneSettings()
			set.Echo = *logs
			play(t, set, s.Script)
		})
	}
}
