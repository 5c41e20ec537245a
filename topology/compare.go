package topology

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Difference is one reason why a topology cannot take over the state of another one.
type Difference struct {
	Operator string `json:"operator"`        // id; of the topology that was, else of the one that is to be; empty for a sub-topology
	Store    string `json:"store,omitempty"` // id; empty if it is not about a store
	Was      string `json:"was"`
	Now      string `json:"now"`
	Rule     string `json:"rule"`   // one of the Rule… values
	Remedy   string `json:"remedy"` // what to do, one sentence
}

// The rules of Compare, as Difference.Rule names them.
const (
	RuleMissing      = "operator with state is missing"
	RuleMoved        = "id moved to another operator"
	RuleOperatorKind = "operator kind"
	RuleStoreKind    = "store kind"
	RuleKey          = "key schema"
	RuleValue        = "value schema"
	RuleVersion      = "state version"
	RuleNewer        = "written by a newer version"
	RuleForm         = "stored form"
	RuleLayout       = "windows or slices"
	RuleWindowKind   = "window kind"
	RuleWindowSize   = "window size"
	RuleWindowHop    = "window hop"
	RuleWindowGap    = "session gap"
	RuleWindowOffset = "window offset"
	RuleWindowZone   = "window time zone"
	RuleZoneRules    = "rules of the time zone"
	RuleAccumulation = "accumulation"
	RuleDedupID      = "deduplication id"
	RuleDedupBucket  = "deduplication bucket"
	RuleDedupMatch   = "deduplication match"
	RuleDedupSalts   = "deduplication salt"
	RuleTTLClock     = "clock of the time to live"
	RuleTimerClock   = "clock of the timers"
	RulePartitions   = "repartition partitions"
	RulePartitioner  = "partitioner"
	RuleTasks        = "number of tasks"
	RuleSubTopology  = "sub-topology"
)

// String returns the difference as one line.
func (d Difference) String() string {
	var at []string
	if d.Operator != "" {
		at = append(at, "operator "+d.Operator)
	}
	if d.Store != "" && d.Store != d.Operator {
		at = append(at, "store "+d.Store)
	}
	return fmt.Sprintf("%s: %s: was %s, now %s; %s", strings.Join(at, ", "), d.Rule, d.Was, d.Now, d.Remedy)
}

// CompareOptions say what a person has agreed to, and to whom remedies speak.
type CompareOptions struct {
	// AllowNonRestored are the ids of operators whose state may be left behind.
	AllowNonRestored []string
	// App is the application id, for the commands in remedies. Default: "<app>".
	App string
}

// Compare returns everything that keeps a topology of shape now from taking over the state of one of shape was, sorted by
// operator and store; nothing if it can. Free to change are lateness, triggers, idle time-outs, out-of-orderness,
// horizons and times to live, sinks and operators without state, the number of instances; and to add is any operator.
//
// Ids are all there is to tell operators apart: two operators of the same kind, types and inputs that have exchanged ids
// look like before.
func Compare(was, now Shape, o CompareOptions) []Difference {
	if o.App == "" {
		o.App = "<app>"
	}
	c := comparison{o: o, was: itemsOf(was), now: itemsOf(now)}
	moved := c.moved()
	for _, id := range c.was.ids {
		w := c.was.by[id]
		n, ok := c.now.by[id]
		switch {
		case moved[id]:
		case !ok && (w.operator.Retired || c.allowed(w)):
		case !ok:
			c.missing(w)
		default:
			c.item(w, n)
		}
	}
	c.tasks()
	slices.SortStableFunc(c.out, func(a, b Difference) int {
		return strings.Compare(a.Operator+"\x00"+a.Store, b.Operator+"\x00"+b.Store)
	})
	return c.out
}

// WriteDifferences writes differences as a table.
func WriteDifferences(w io.Writer, list []Difference) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "OPERATOR\tSTORE\tRULE\tWAS\tNOW\tREMEDY")
	for _, d := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Operator, d.Store, d.Rule, d.Was, d.Now, d.Remedy)
	}
	return t.Flush()
}

// comparison is one Compare under way.
type comparison struct {
	o        CompareOptions
	was, now items
	out      []Difference
}

func (c *comparison) allowed(i item) bool {
	return slices.Contains(c.o.AllowNonRestored, i.operator.ID) || slices.Contains(c.o.AllowNonRestored, i.id)
}

// differ notes a difference of an item.
func (c *comparison) differ(i item, rule, was, now, remedy string) {
	d := Difference{Operator: i.operator.ID, Was: orNone(was), Now: orNone(now), Rule: rule, Remedy: remedy}
	if i.store != nil {
		d.Store = i.id
	}
	c.out = append(c.out, d)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// fresh is the remedy of what cannot be carried over.
func (c *comparison) fresh(i item) string {
	what := "operator"
	if i.store != nil && i.id != i.operator.ID {
		what = "store"
	}
	return fmt.Sprintf("change it back, or give the %s a new id and list %s in AllowNonRestored to begin with empty state, or run tidemark reset --app %s to begin anew",
		what, i.id, c.o.App)
}

// tasks compares how many tasks hold the state, where it is known.
func (c *comparison) tasks() {
	for _, id := range c.was.ids {
		w, n := c.was.by[id], c.now.by[id]
		if w.store == nil || n.store == nil || w.operator.Retired {
			continue
		}
		if a, b := w.operator.Tasks, n.operator.Tasks; a > 0 && b > 0 && a != b {
			c.differ(w, RuleTasks, fmt.Sprint(a), fmt.Sprint(b),
				fmt.Sprintf("give its inputs %d partitions again, or run tidemark reset --app %s to begin anew", a, c.o.App))
		}
	}
}
