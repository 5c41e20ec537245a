package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/rebalance"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
)

// control is this instance's view of the control topic: the ids of the sub-topologies, the stores, and the
// state fingerprint in force. Only the leader of the group writes it, and only when no member has the
// fingerprint in force any more.
type control struct {
	e *Engine

	mu    sync.Mutex
	state changelog.ControlState
	tasks map[string]int // by sub-topology of the plan

	// refused says that the topology could not take over when the instance started: it has looked at nothing else and
	// writes nothing.
	refused bool
}

func newControl(e *Engine) *control { return &control{e: e} }

// load reads the topic from its start. A missing one is as empty: create makes it, once nothing speaks against it.
func (c *control) load(ctx context.Context) error {
	name := c.e.names.Control()
	have, err := c.e.describe(ctx, []string{name})
	if err != nil {
		return err
	}
	missing, bad := changelog.Verify([]changelog.Want{changelog.WantControl(name)}, values(have))
	if len(bad) > 0 {
		return fmt.Errorf("tidemark: %w: %w", ErrTopicConfig, bad[0])
	}
	var state changelog.ControlState
	if len(missing) == 0 {
		if state, err = readControl(ctx, c.e.admin, c.e.reader, name); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.state = state
	c.mu.Unlock()
	return nil
}

// create makes the topic if it is missing.
func (c *control) create(ctx context.Context) error {
	name := c.e.names.Control()
	have, err := c.e.describe(ctx, []string{name})
	if err != nil {
		return err
	}
	missing, _ := changelog.Verify([]changelog.Want{changelog.WantControl(name)}, values(have))
	return c.e.create(ctx, missing)
}

// check returns what keeps the topology from taking over what is in force, as an *UpgradeError. One that is in force has
// nothing to take over.
func (c *control) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st := c.state.State; st != nil && st.Fingerprint == c.e.plan.StateFingerprint {
		return nil
	}
	list, err := differences(&c.state, c.e.plan.Shape(), topology.CompareOptions{AllowNonRestored: c.e.cfg.AllowNonRestored, App: c.e.cfg.App})
	if err != nil || len(list) == 0 {
		return err
	}
	return &UpgradeError{list}
}

// refuse notes at the start that the topology cannot take over, and says why, once. The instance joins all the same: while
// another topology runs it waits.
func (c *control) refuse(err *UpgradeError) {
	c.refused = true
	for _, d := range err.Differences {
		c.e.log.Warn("incompatible with the topology in force", zap.String("operator", d.Operator), zap.String("store", d.Store),
			zap.String("rule", d.Rule), zap.String("was", d.Was), zap.String("now", d.Now), zap.String("remedy", d.Remedy))
	}
}

// errRestart ends an instance whose topology was refused when it started and is not any more.
var errRestart = fmt.Errorf("tidemark: %w when this instance started, and is not any more; start it again", ErrIncompatible)

// inherit returns the id of every sub-topology of the plan.
func (c *control) inherit() (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := c.wanted()
	got, err := changelog.Inherit(c.state.SubTopologies(), want)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]string, len(got))
	for i := range got {
		ids[want[i].ID] = got[i].ID
	}
	return ids, nil
}

// wanted is the plan as the control topic records it, before inheritance.
func (c *control) wanted() []changelog.SubTopology {
	var out []changelog.SubTopology
	for _, s := range c.e.plan.Subs {
		st := changelog.SubTopology{ID: s.ID, Operators: slices.Clone(s.Operators)}
		for _, src := range s.Sources {
			if src.Topic != "" {
				st.Topics = append(st.Topics, src.Topic)
			}
		}
		slices.Sort(st.Topics)
		out = append(out, st)
	}
	return out
}

// inForce is asked on the leader before each plan. When no member has the recorded fingerprint the leader
// switches to its own: it writes the control records first, and only then the plan hands out tasks.
func (c *control) inForce(members []rebalance.Member) (string, error) {
	ctx, cancel := context.WithTimeout(c.e.admin.Context(), 10*time.Second)
	defer cancel()
	if !c.refused {
		if err := c.raiseFormat(ctx, members); err != nil {
			return "", err
		}
	}
	c.mu.Lock()
	st := c.state.State
	c.mu.Unlock()
	own := c.e.plan.StateFingerprint
	if has(members, st) {
		if st.Fingerprint == own && !c.refused {
			return own, c.complete(ctx)
		}
		return st.Fingerprint, nil
	}
	// Another leader may have switched since this instance started.
	if err := c.load(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	st = c.state.State
	c.mu.Unlock()
	if has(members, st) {
		return st.Fingerprint, nil
	}
	err := c.check()
	if err == nil && c.refused {
		err = errRestart
	}
	if err != nil {
		c.e.fail(err)
		return "", err
	}
	if st == nil || st.Fingerprint != own {
		if err := c.take(ctx, own, st); err != nil {
			return "", err
		}
	}
	return own, nil
}

func has(members []rebalance.Member, st *changelog.StateRecord) bool {
	return st != nil && slices.ContainsFunc(members, func(m rebalance.Member) bool { return m.Data.StateFingerprint == st.Fingerprint })
}

// userData names the format of the group's user data in the control topic.
const userData = "userdata"

// format returns the user data version in force, 0 while none is recorded.
func (c *control) format() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Formats[userData]
}

// raiseFormat records the highest version that all members understand, if it is higher than the one in force.
// It never goes down: a member that does not understand it waits.
func (c *control) raiseFormat(ctx context.Context, members []rebalance.Member) error {
	common := rebalance.FormatMax
	for _, m := range members {
		if m.Data.FormatMax > 0 {
			common = min(common, m.Data.FormatMax)
		}
	}
	if common <= c.format() {
		return nil
	}
	if err := c.write(ctx, changelog.FormatRecord(userData, common)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rec := changelog.FormatRecord(userData, common)
	return c.state.Apply(rec.Key, rec.Value)
}

// write produces control records.
func (c *control) write(ctx context.Context, recs ...changelog.ControlRecord) error {
	var out []*kgo.Record
	for _, r := range recs {
		out = append(out, &kgo.Record{Topic: c.e.names.Control(), Key: []byte(r.Key), Value: r.Value})
	}
	if err := c.e.admin.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return fmt.Errorf("tidemark: write %s: %w", c.e.names.Control(), err)
	}
	return nil
}

// take puts this topology in force.
func (c *control) take(ctx context.Context, own string, before *changelog.StateRecord) error {
	rec := changelog.StateRecord{Fingerprint: own, Time: c.e.cfg.Clock.Now().UnixMilli()}
	if before != nil {
		rec.Compatible = append(slices.Clone(before.Compatible), before.Fingerprint)
		if n := len(rec.Compatible); n > 20 {
			rec.Compatible = rec.Compatible[n-20:]
		}
	}
	ids := make(map[string]string)
	for _, s := range c.e.subs {
		ids[s.Sub.ID] = s.id
	}
	var recs []changelog.ControlRecord
	for _, w := range c.wanted() {
		w.ID = ids[w.ID]
		recs = append(recs, changelog.SubRecord(w))
	}
	for _, s := range c.e.plan.Subs {
		for _, spec := range s.Stores {
			recs = append(recs, changelog.StoreRecordOf(storeRecord(spec)))
		}
	}
	shapes, err := c.shapes()
	if err != nil {
		return err
	}
	for _, s := range shapes {
		recs = append(recs, changelog.ShapeRecordOf(s))
	}
	recs = append(recs, changelog.StateRecordOf(rec))
	if err := c.write(ctx, recs...); err != nil {
		return err
	}
	c.e.log.Info("topology in force", zap.String("fingerprint", own))
	return c.load(ctx)
}

// shapes are the records of the plan's operators with state.
func (c *control) shapes() ([]changelog.ShapeRecord, error) {
	s := c.e.plan.Shape().WithTasks(c.tasks)
	var recs []changelog.ShapeRecord
	for _, o := range s.Operators {
		b, err := o.Append(nil)
		if err != nil {
			return nil, fmt.Errorf("tidemark: %w", err)
		}
		recs = append(recs, changelog.ShapeRecord{Operator: o.ID, Fingerprint: s.Fingerprint, Shape: b})
	}
	return recs, nil
}

// complete records the shapes of the topology in force if a build that knows none has put it there.
func (c *control) complete(ctx context.Context) error {
	shapes, err := c.shapes()
	if err != nil {
		return err
	}
	var recs []changelog.ControlRecord
	c.mu.Lock()
	for _, s := range shapes {
		if c.state.Shapes[s.Operator].Fingerprint != s.Fingerprint {
			recs = append(recs, changelog.ShapeRecordOf(s))
		}
	}
	c.mu.Unlock()
	if len(recs) == 0 {
		return nil
	}
	if err := c.write(ctx, recs...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range recs {
		if err := c.state.Apply(r.Key, r.Value); err != nil {
			return err
		}
	}
	return nil
}

// announce tells what the leader said that a user must know: that this instance waits, and why.
func (e *Engine) announce(a rebalance.Assignment) {
	waiting := false
	for _, w := range a.Waiting {
		if w.Instance != e.instance {
			continue
		}
		waiting = true
		if !e.waiting.Swap(true) {
			e.log.Warn("waiting without tasks", zap.String("reason", w.Reason.String()), zap.String("own", e.plan.StateFingerprint), zap.String("in_force", a.StateFingerprint))
			e.phase("waiting: " + w.Reason.String())
		}
	}
	if !waiting {
		e.waiting.Store(false)
		if e.control.refused {
			e.fail(errRestart) // nothing of it is prepared
		}
	}
	var hosts []string
	for _, h := range a.Hosts {
		hosts = append(hosts, h.Instance)
	}
	e.log.Info("assignment", zap.Int32("generation", a.Generation), zap.Int("tasks", len(a.Tasks())), zap.String("instances", strings.Join(hosts, ",")))
}

// storeRecord is a store as the control topic records it.
func storeRecord(s store.Spec) changelog.StoreRecord {
	kind := s.Kind
	if kind == 0 {
		kind = store.KeyValue
	}
	return changelog.StoreRecord{ID: s.ID, Kind: kind.String(), KeySchema: s.KeySchema, ValueSchema: s.ValueSchema, Changelog: s.Changelog}
}
