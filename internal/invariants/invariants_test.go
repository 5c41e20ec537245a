package invariants

import "testing"

func TestCheck(t *testing.T) {
	Check(true, "never shown")
	defer func() {
		if r := recover(); (r != nil) != Enabled {
			t.Errorf("panic %v with Enabled %v", r, Enabled)
		} else if Enabled && r != "invariant broken: 3 rows left" {
			t.Errorf("message %q", r)
		}
	}()
	Check(false, "%d rows left", 3)
}
