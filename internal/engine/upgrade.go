package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/topology"
)

// UpgradeError says that a topology cannot take over the state that is there. It wraps ErrIncompatible.
type UpgradeError struct {
	Differences []topology.Difference // at least one
}

// Error lists every difference, one per line.
func (e *UpgradeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tidemark: %v, differences: %d", ErrIncompatible, len(e.Differences))
	for _, d := range e.Differences {
		b.WriteString("\n  " + d.String())
	}
	return b.String()
}

// Unwrap returns ErrIncompatible.
func (e *UpgradeError) Unwrap() error { return ErrIncompatible }

// CheckConfig is what CheckUpgrade needs to look at an app from outside.
type CheckConfig struct {
	// App is the application id, Client the options of every client.
	App    string
	Client []kgo.Opt
	// AllowNonRestored are the operators whose state may be left behind.
	AllowNonRestored []string
}

// CheckUpgrade compares a shape with what is recorded of an app. It writes nothing and joins no group. An app that has
// never run differs in nothing.
func CheckUpgrade(ctx context.Context, now topology.Shape, c CheckConfig) ([]topology.Difference, error) {
	names, err := changelog.NewNames(c.App, 0)
	if err != nil {
		return nil, fmt.Errorf("tidemark: %w", err)
	}
	admin, err := kgo.NewClient(c.Client...)
	if err != nil {
		return nil, fmt.Errorf("tidemark: client: %w", err)
	}
	defer admin.Close()
	if err := admin.Ping(ctx); err != nil {
		return nil, fmt.Errorf("tidemark: no broker answers: %w", err)
	}
	reader, err := changelog.NewReader(changelog.ReaderConfig{Client: c.Client})
	if err != nil {
		return nil, fmt.Errorf("tidemark: client: %w", err)
	}
	defer reader.Close()
	have, err := changelog.DescribeTopics(ctx, admin, []string{names.Control()}, false)
	if err != nil || len(have) == 0 {
		return nil, named(err)
	}
	state, err := readControl(ctx, admin, reader, names.Control())
	if err != nil {
		return nil, named(err)
	}
	return differences(&state, now, topology.CompareOptions{AllowNonRestored: c.AllowNonRestored, App: c.App})
}

// CountTasks returns the number of tasks of every sub-topology, nil while the topics that decide it do not all exist.
func CountTasks(ctx context.Context, plan *topology.Plan, c CheckConfig) (map[string]int, error) {
	admin, err := kgo.NewClient(c.Client...)
	if err != nil {
		return nil, fmt.Errorf("tidemark: client: %w", err)
	}
	defer admin.Close()
	var topics []string
	for _, s := range plan.Subs {
		for _, src := range s.Sources {
			if src.Topic != "" {
				topics = append(topics, src.Topic)
			}
		}
	}
	have, err := changelog.DescribeTopics(ctx, admin, topics, false)
	if err != nil {
		return nil, named(err)
	}
	counts := make(map[string]int)
	for _, h := range have {
		counts[h.Topic] = int(h.Partitions)
	}
	n, err := topology.CheckPartitions(plan, counts)
	if err != nil {
		return nil, nil // what is missing or does not fit is reported at the start, not by a comparison
	}
	return n.Subs, nil
}

// readableStores are the stores of a task in every form that it can read.
func (t *task) readableStores() []snapshot.Store {
	list := t.snapshotStores()
	for _, spec := range t.sub.Stores {
		r := storeRecord(spec)
		for _, schema := range spec.Older {
			if !spec.Derived {
				list = append(list, snapshot.Store{ID: r.ID, Kind: r.Kind, KeySchema: r.KeySchema, ValueSchema: schema})
			}
		}
	}
	return list
}

// readControl folds a control topic that exists.
func readControl(ctx context.Context, admin *kgo.Client, reader *changelog.Reader, topic string) (changelog.ControlState, error) {
	var state changelog.ControlState
	tp := changelog.TopicPartition{Topic: topic}
	bounds, err := changelog.ListBounds(ctx, admin, []changelog.TopicPartition{tp})
	if err != nil {
		return state, fmt.Errorf("tidemark: %w", err)
	}
	b := bounds[tp]
	_, err = reader.Read(ctx, []changelog.Partition{{Topic: topic, From: b.Start, Target: b.HighWatermark}}, func(_ int, r *kgo.Record) error {
		return state.Apply(string(r.Key), r.Value)
	}, func(int, int64, int64) {})
	if err != nil {
		return state, fmt.Errorf("tidemark: read %s: %w", topic, err)
	}
	return state, nil
}

// differences compares a shape with what a control topic says.
func differences(state *changelog.ControlState, now topology.Shape, o topology.CompareOptions) ([]topology.Difference, error) {
	was, list, err := recorded(state)
	if err != nil {
		return nil, err
	}
	list = append(list, topology.Compare(was, now, o)...)
	return append(list, misplaced(state.SubTopologies(), subTopologies(now))...), nil
}

// recorded is the shape of what is in force, and of what was earlier and still has its topics. A shape that this build
// cannot read is a difference by itself.
func recorded(state *changelog.ControlState) (topology.Shape, []topology.Difference, error) {
	var s topology.Shape
	var list []topology.Difference
	if state.State != nil {
		s.Fingerprint = state.State.Fingerprint
	}
	known := make(map[string]bool) // stores
	for _, id := range slices.Sorted(maps.Keys(state.Shapes)) {
		r := state.Shapes[id]
		o, err := topology.DecodeOperatorShape(r.Shape)
		if ve, ok := errors.AsType[*topology.ShapeVersionError](err); ok {
			list = append(list, topology.Difference{
				Operator: id, Rule: topology.RuleNewer, Was: fmt.Sprintf("shape version %d", ve.Have), Now: fmt.Sprintf("shape versions up to %d", ve.Want),
				Remedy: "deploy a build with a version of Tidemark that is at least as new as the one that runs",
			})
			continue
		}
		if err != nil {
			return s, nil, fmt.Errorf("tidemark: operator %s: %w", id, err)
		}
		o.Retired = r.Fingerprint != s.Fingerprint
		s.Operators = append(s.Operators, o)
		for _, st := range o.Stores {
			known[st.ID] = true
		}
	}
	// Builds that record no shapes record stores, and never remove them.
	for _, id := range slices.Sorted(maps.Keys(state.Stores)) {
		if r := state.Stores[id]; !known[id] {
			s.Operators = append(s.Operators, topology.OperatorShape{
				ID: id, Retired: true, Stores: []topology.StoreShape{{ID: id, Kind: r.Kind, Key: r.KeySchema, Value: r.ValueSchema}},
			})
		}
	}
	return s, list, nil
}

// subTopologies is a shape as the control topic records it, before inheritance.
func subTopologies(s topology.Shape) []changelog.SubTopology {
	var out []changelog.SubTopology
	for _, sub := range s.Subs {
		out = append(out, changelog.SubTopology{ID: sub.ID, Operators: sub.Operators, Topics: sub.Topics})
	}
	return out
}

// misplaced finds sub-topologies that cannot take over the commits of the recorded ones.
func misplaced(recorded, want []changelog.SubTopology) []topology.Difference {
	differ := func(id, was, now, remedy string) topology.Difference {
		return topology.Difference{Operator: id, Rule: topology.RuleSubTopology, Was: was, Now: now, Remedy: remedy}
	}
	const undo = "change it back, or take a savepoint with the old topology and restore it into a new generation"
	got, err := changelog.Inherit(recorded, want)
	if err != nil {
		var list []topology.Difference
		for _, err := range unjoin(err) {
			switch err := err.(type) {
			case *changelog.MergeError:
				list = append(list, differ(err.ID, "apart: "+strings.Join(err.Former, ", "), "one: "+err.ID, undo))
			case *changelog.SplitError:
				list = append(list, differ(err.Former, "one: "+err.Former, "apart: "+strings.Join(err.Into, ", "), undo))
			case *changelog.TakenError:
				list = append(list, differ(err.ID, "of "+strings.Join(err.Operators, ", "), "the id of another one", fmt.Sprintf("rename the operator %s", err.ID)))
			default:
				list = append(list, differ("", "", err.Error(), undo))
			}
		}
		return list
	}
	// Committed offsets belong to the sub-topology that has read a topic, and tell of its commits.
	var list []topology.Difference
	for _, g := range got {
		for _, r := range recorded {
			for _, topic := range r.Topics {
				if r.ID != g.ID && slices.Contains(g.Topics, topic) {
					list = append(list, differ(g.ID, fmt.Sprintf("topic %s read by sub-topology %s", topic, r.ID), "read by sub-topology "+g.ID, undo))
				}
			}
		}
	}
	return list
}

// unjoin returns the parts of a joined error.
func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}
