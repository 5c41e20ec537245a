package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

func TestRealFollowsTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Real()
		start := c.Now()

		timer := c.NewTimer(time.Hour)
		if !timer.Reset(2 * time.Hour) {
			t.Error("Reset of a pending timer: got false")
		}
		if got := (<-timer.C()).Sub(start); got != 2*time.Hour {
			t.Errorf("timer fired after %v, want 2h", got)
		}
		if timer.Stop() {
			t.Error("Stop of a fired timer: got true")
		}

		ticker := c.NewTicker(time.Minute)
		first := <-ticker.C()
		ticker.Reset(time.Second)
		if got := (<-ticker.C()).Sub(first); got != time.Second {
			t.Errorf("tick after Reset came after %v, want 1s", got)
		}
		ticker.Stop()

		before := c.Now()
		<-c.After(time.Minute)
		if got := c.Now().Sub(before); got != time.Minute {
			t.Errorf("After fired after %v, want 1m", got)
		}
	})
}
