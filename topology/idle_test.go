package topology_test

import (
	"testing"

	"github.com/tidemark/tidemark/window"
)

// Silence is not believed after a restart: the task remembers it, and somebody has to prove it anew.
func TestSilenceIsProvenAnew(t *testing.T) {
	d := windows(t, 0, window.Tumbling(10*ms))
	logs := map[string]changelog{}
	d.feeds(t, "in", at(3, "k"))
	d.tasks["n"].task.SetIdle(0)
	if err := d.tasks["n"].advance(); err != nil {
		t.Fatal(err)
	}
	d.commitTo(t, logs)
	for how, again := range map[string]func(){"abort": func() { d.abort(t) }, "restore": func() { d.restore(t, logs) }} {
		again()
		task := d.tasks["n"].task
		if !task.WasIdle(0) || task.Idle(0) || task.Watermarks(nil)[0].Idle {
			t.Errorf("%s: was idle %v, is %v, its operator %v", how, task.WasIdle(0), task.Idle(0), task.Watermarks(nil)[0].Idle)
		}
	}
}
