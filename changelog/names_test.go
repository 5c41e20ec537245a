package changelog

import (
	"strings"
	"testing"
)

func names(t *testing.T, app string, generation int) Names {
	t.Helper()
	n, err := NewNames(app, generation)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNames(t *testing.T) {
	n, g := names(t, "app", 0), names(t, "app", 3)
	for got, want := range map[string]string{
		n.Group(): "app", n.Repartition("by-x"): "app-by-x-repartition", n.Changelog("c"): "app-c-changelog",
		n.Progress("s"): "app-s-progress", n.Control(): "app-control", n.DeadLetter(): "app-dead-letter", n.Late(): "app-late",
		n.TransactionalID("5f", 2): "app-5f-2", g.Group(): "app-g3", g.Changelog("c"): "app-g3-c-changelog", g.Control(): "app-g3-control",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNamesParse(t *testing.T) {
	n, g := names(t, "app", 0), names(t, "app", 3)
	cases := []struct {
		n     Names
		topic string
		class Class
		id    string
	}{
		{n, "app-by-x-repartition", Repartition, "by-x"},
		{n, "app-c-changelog", KVChangelog, "c"},
		{n, "app-s-progress", ProgressLog, "s"},
		{n, "app-control", Control, ""},
		{n, "app-dead-letter", DeadLetter, ""},
		{n, "app-late", Late, ""},
		{n, "app-x-control", 0, ""},
		{n, "app-changelog", 0, ""},
		{n, "app-g3-c-changelog", 0, ""}, // of another generation
		{g, "app-g3-c-changelog", KVChangelog, "c"},
		{g, "app-c-changelog", 0, ""},
		{n, "application-c-changelog", 0, ""},
		{n, "orders", 0, ""},
	}
	for _, c := range cases {
		class, id, ok := c.n.Parse(c.topic)
		if class != c.class || id != c.id || ok != (c.class != 0) {
			t.Errorf("%s parses %q to %v %q %v", c.n.Base(), c.topic, class, id, ok)
		}
	}
	for topic, want := range map[string]bool{
		"app-c-changelog": true, "app-g7-c-changelog": true, "app-g7-control": true, "app-control": true,
		"app-g7": false, "app-gx-c": false, "orders": false, "app-orders": false,
	} {
		if n.Reserved(topic) != want {
			t.Errorf("reserved %q: %v", topic, !want)
		}
	}
}

// T-TXN-ID
func TestTransactionalIDsOfTwoApplications(t *testing.T) {
	a, ab := names(t, "a", 0), names(t, "a-b", 0)
	ids := map[string]Names{a.TransactionalID("5f", 0): a, ab.TransactionalID("5f", 0): ab, ab.TransactionalID("0", 1): ab, names(t, "a", 2).TransactionalID("5f", 0): {}}
	for id, owner := range ids {
		for _, n := range []Names{a, ab} {
			instance, worker, ok := n.ParseTransactionalID(id)
			if ok != (n == owner) {
				t.Errorf("%q belongs to %q: %v", id, n.Base(), ok)
			}
			if ok && n.TransactionalID(instance, worker) != id {
				t.Errorf("%q parses to %q %d", id, instance, worker)
			}
		}
	}
	for _, id := range []string{"a", "a-", "a-5f", "a-5f-", "a-5f-x", "a-5f--1", "a-5f-01", "a--1", "b-5f-0"} {
		if _, _, ok := a.ParseTransactionalID(id); ok {
			t.Errorf("%q parses", id)
		}
	}
}

func TestNewNamesRefusals(t *testing.T) {
	for _, app := range []string{"", "a b", "a/b", "ä", ".", "..", "app-g2", "app-g0", strings.Repeat("a", 240)} {
		if _, err := NewNames(app, 0); err == nil {
			t.Errorf("application id %q is accepted", app)
		}
	}
	for _, app := range []string{"a", "a-b", "a.b_c", "app-g", "app-gx", "g2"} {
		if _, err := NewNames(app, 0); err != nil {
			t.Error(err)
		}
	}
	if _, err := NewNames("a", -1); err == nil {
		t.Error("generation -1 is accepted")
	}
}

func TestCheckIDs(t *testing.T) {
	n := names(t, "app", 0)
	if err := n.CheckIDs([]string{"a", "b-c", "a.b", "g", "gx-1", "count"}); err != nil {
		t.Error(err)
	}
	err := n.CheckIDs([]string{"g2-count", "a.b", "a_b", "x y", strings.Repeat("a", 229)})
	for _, part := range []string{`"g2-count" begins like a generation`, `"a.b" and "a_b"`, `"x y"`, "249"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
}

// The names a+b-c and a-b+c are one.
func TestCheckClashes(t *testing.T) {
	a := names(t, "a", 0)
	mine := []string{a.Repartition("b-c"), a.Changelog("d"), a.Control()}
	if err := a.CheckClashes(mine, []string{"a-control", "b-control", "ab-control", "orders", "-control"}); err != nil {
		t.Error(err)
	}
	err := a.CheckClashes(mine, []string{"a-control", "a-b-control"})
	if err == nil || !strings.Contains(err.Error(), `"a-b-c-repartition" begins with the id of application "a-b"`) {
		t.Errorf("clash of prefixes: %v", err)
	}
	err = a.CheckClashes(mine, []string{"a-b-control", "a-b-c-repartition"})
	if err == nil || !strings.Contains(err.Error(), `"a-b-c-repartition" belongs to application "a-b"`) {
		t.Errorf("clash of topics: %v", err)
	}
	// The other way round: a was there first.
	ab := names(t, "a-b", 0)
	cluster := []string{"a-control", "a-b-c-repartition"}
	err = ab.CheckClashes([]string{ab.Control(), ab.Changelog("d")}, cluster)
	if err == nil || !strings.Contains(err.Error(), `"a-b-c-repartition" belongs to application "a"`) {
		t.Errorf("clash with an older application: %v", err)
	}
	// After the first start the topics below the control topic are its own.
	if err := ab.CheckClashes([]string{ab.Repartition("c")}, append(cluster, "a-b-control")); err != nil {
		t.Error(err)
	}
}
