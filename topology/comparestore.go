package topology

import (
	"fmt"
	"slices"
	"strings"
)

// item compares what has the same id.
func (c *comparison) item(w, n item) {
	switch {
	case (w.store == nil) != (n.store == nil):
		c.differ(w, RuleOperatorKind, w.describe(), n.describe(), c.fresh(w))
	case w.store == nil:
		c.repartition(w, n)
	case w.operator.Kind == "":
		c.record(w, n)
	default:
		c.store(w, n)
	}
}

func (c *comparison) repartition(w, n item) {
	a, b := w.operator.Repartition, n.operator.Repartition
	drain := "change it back, or let the topic run empty before and give the operator a new id"
	for _, f := range []struct{ rule, was, now string }{
		{RuleKey, a.Key, b.Key}, {RuleValue, a.Value, b.Value}, {RulePartitioner, a.Partitioner, b.Partitioner},
	} {
		if f.was != f.now {
			c.differ(w, f.rule, f.was, f.now, drain)
		}
	}
	if a.Partitions > 0 && b.Partitions > 0 && a.Partitions != b.Partitions && !w.operator.Retired {
		c.differ(w, RulePartitions, fmt.Sprint(a.Partitions), fmt.Sprint(b.Partitions),
			fmt.Sprintf("declare %d partitions again, or run tidemark reset --app %s to begin anew: the state behind it is divided by them", a.Partitions, c.o.App))
	}
}

// own says that the user's functions decide what an operator of the kind does.
func own(kind string) bool {
	return kind == kindReduce || kind == kindAggregate || kind == kindProcess
}

func (c *comparison) store(w, n item) {
	a, b := w.store, n.store
	before := len(c.out)
	if x, y := a.Window, b.Window; x != nil && y != nil && x.Kind != y.Kind {
		c.differ(w, RuleWindowKind, x.Kind, y.Kind, c.fresh(w))
		return
	}
	if a.Kind != b.Kind {
		c.differ(w, RuleStoreKind, a.Kind, b.Kind, c.fresh(w))
		return
	}
	if x, y := w.operator.Kind, n.operator.Kind; x != y && !own(x) && !own(y) {
		c.differ(w, RuleOperatorKind, x, y, c.fresh(w))
	}
	if a.Key != b.Key {
		c.differ(w, RuleKey, a.Key, b.Key, c.fresh(w))
	}
	if a.Dedup == nil || b.Dedup == nil {
		c.value(w, n, a.Value)
	}
	c.window(w, n)
	c.dedup(w, n)
	if x, y := a.TTL, b.TTL; x != nil && y != nil && x.Clock != y.Clock {
		c.differ(w, RuleTTLClock, x.Clock, y.Clock, c.fresh(w))
	}
	// Whatever else the rows depend on: a rule left out above must not let it pass.
	if a.Form != b.Form && len(c.out) == before {
		c.differ(w, RuleForm, a.Form, b.Form, c.fresh(w))
	}
}

// record compares with what an older build has recorded of a store: one text for all that decides about the values.
func (c *comparison) record(w, n item) {
	a, b := w.store, n.store
	if a.Kind != b.Kind {
		c.differ(w, RuleStoreKind, a.Kind, b.Kind, c.fresh(w))
	}
	if a.Key != b.Key {
		c.differ(w, RuleKey, a.Key, b.Key, c.fresh(w))
	}
	if a.Value != b.full(b.Value) {
		value := a.Value
		if b.Form != "" {
			value, _ = strings.CutSuffix(value, " "+b.Form)
		}
		if b.Version > 0 && value != a.Value || b.Form == "" {
			c.value(w, n, value)
			return
		}
		c.differ(w, RuleValue, a.Value, b.full(b.Value), c.fresh(w))
	}
}

// full is the schema of a store of that form whose values have a schema.
func (s *StoreShape) full(value string) string {
	if s.Form == "" {
		return value
	}
	return value + " " + s.Form
}

// value compares the values, which were of schema was, and looks for migrations.
func (c *comparison) value(w, n item, was string) {
	a, b := w.store, n.store
	switch {
	case a.Kind == timersKind && was != b.Value:
		c.differ(w, RuleTimerClock, was, b.Value, c.fresh(w))
	case a.Version > b.Version:
		c.differ(w, RuleNewer, versioned(was, a.Version), versioned(b.Value, b.Version),
			fmt.Sprintf("deploy a build that knows state version %d of %s", a.Version, w.id))
	case a.Version == b.Version && was != b.Value:
		c.differ(w, RuleValue, versioned(was, a.Version), versioned(b.Value, b.Version), fmt.Sprintf(
			"declare StateVersion(%d) and Migrate(%d, …) from the former values, or give it a new id and list %s in AllowNonRestored to begin with empty state, or run tidemark reset --app %s to begin anew",
			a.Version+1, a.Version, w.id, c.o.App))
	case a.Version < b.Version:
		at := slices.IndexFunc(b.Older, func(o OlderShape) bool { return o.Version == a.Version })
		switch {
		case at < 0:
			c.differ(w, RuleVersion, versioned(was, a.Version), versioned(b.Value, b.Version),
				fmt.Sprintf("add Migrate(%d, …), and one for every version up to %d", a.Version, b.Version-1))
		case b.Older[at].Value != was:
			c.differ(w, RuleValue, versioned(was, a.Version), versioned(b.Older[at].Value, a.Version),
				fmt.Sprintf("give Migrate(%d, …) the type and codec that version %d was written with", a.Version, a.Version))
		}
	}
}

const timersKind = "timers"

func versioned(schema string, version int) string {
	if version == 0 {
		return schema
	}
	return fmt.Sprintf("version %d, %s", version, schema)
}

func (c *comparison) window(w, n item) {
	a, b := w.store.Window, n.store.Window
	if a == nil || b == nil {
		return
	}
	for _, f := range []struct{ rule, was, now string }{
		{RuleWindowSize, a.Size, b.Size}, {RuleWindowHop, a.Hop, b.Hop}, {RuleWindowGap, a.Gap, b.Gap},
		{RuleWindowOffset, a.Offset, b.Offset}, {RuleWindowZone, a.Zone, b.Zone},
		{RuleLayout, w.store.Layout, n.store.Layout},
	} {
		// A tumbling window's hop is its size.
		if f.was != f.now && (f.rule != RuleWindowHop || a.Kind != "tumbling") {
			c.differ(w, f.rule, f.was, f.now, c.fresh(w))
		}
	}
	if a.Zone == b.Zone && a.ZoneRules != b.ZoneRules {
		c.differ(w, RuleZoneRules, a.ZoneRules, b.ZoneRules,
			"build with the Go release, hence the time zone database, of before, or give the operator a new id")
	}
	// A window kept in slices shows one pane, so that there is nothing to accumulate.
	if a.Mode != b.Mode && (w.store.Layout != "slices" || n.store.Layout != "slices") {
		c.differ(w, RuleAccumulation, a.Mode, b.Mode, c.fresh(w))
	}
}

func (c *comparison) dedup(w, n item) {
	a, b := w.store.Dedup, n.store.Dedup
	if a == nil || b == nil {
		return
	}
	if w.store.Value != n.store.Value {
		c.differ(w, RuleDedupID, w.store.Value, n.store.Value, c.fresh(w))
	}
	match := map[bool]string{true: "any time", false: "same event time"}
	if a.AnyTime != b.AnyTime {
		c.differ(w, RuleDedupMatch, match[a.AnyTime], match[b.AnyTime], c.fresh(w))
	}
	if a.Bucket != b.Bucket {
		c.differ(w, RuleDedupBucket, a.Bucket, b.Bucket, c.fresh(w))
	}
	if a.Salts != b.Salts {
		c.differ(w, RuleDedupSalts, fmt.Sprint(a.Salts), fmt.Sprint(b.Salts), c.fresh(w))
	}
}
