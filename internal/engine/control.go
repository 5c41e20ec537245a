package engine

import (
	"context"
	"errors"
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
)

// control is this instance's view of the control topic: the ids of the sub-topologies, the stores, and the
// state fingerprint in force. Only the leader of the group writes it, and only when no member has the
// fingerprint in force any more.
type control struct {
	e *Engine

	mu    sync.Mutex
	state changelog.ControlState
}

func newControl(e *Engine) *control { return &control{e: e} }

// load creates the topic if it is missing and reads it from its start.
func (c *control) load(ctx context.Context) error {
	e := c.e
	name := e.names.Control()
	have, err := e.describe(ctx, []string{name})
	if err != nil {
		return err
	}
	missing, bad := changelog.Verify([]changelog.Want{changelog.WantControl(name)}, values(have))
	if len(bad) > 0 {
		return fmt.Errorf("tidemark: %w: %w", ErrTopicConfig, bad[0])
	}
	if err := e.create(ctx, missing); err != nil {
		return err
	}
	tp := changelog.TopicPartition{Topic: name}
	bounds, err := changelog.ListBounds(ctx, e.admin, []changelog.TopicPartition{tp})
	if err != nil {
		return fmt.Errorf("tidemark: %w", err)
	}
	b := bounds[tp]
	var state changelog.ControlState
	_, err = e.reader.Read(ctx, []changelog.Partition{{Topic: name, From: b.Start, Target: b.HighWatermark}}, func(_ int, r *kgo.Record) error {
		return state.Apply(string(r.Key), r.Value)
	}, func(int, int64, int64) {})
	if err != nil {
		return fmt.Errorf("tidemark: read %s: %w", name, err)
	}
	c.mu.Lock()
	c.state = state
	c.mu.Unlock()
	return nil
}

// check refuses a topology whose stores differ from the recorded ones of the same id.
func (c *control) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, s := range c.e.plan.Subs {
		for _, spec := range s.Stores {
			was, ok := c.state.Stores[spec.ID]
			if !ok {
				continue
			}
			is := storeRecord(spec)
			if was != is {
				errs = append(errs, fmt.Errorf("tidemark: %w: store %s was %s with key %s and value %s, now is %s with key %s and value %s; give the store a new id, or run tidemark reset --app %s",
					ErrIncompatible, spec.ID, was.Kind, was.KeySchema, was.ValueSchema, is.Kind, is.KeySchema, is.ValueSchema, c.e.cfg.App))
			}
		}
	}
	return errors.Join(errs...)
}

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
	if err := c.raiseFormat(ctx, members); err != nil {
		return "", err
	}
	c.mu.Lock()
	st := c.state.State
	c.mu.Unlock()
	own := c.e.plan.StateFingerprint
	if has(members, st) {
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
	if err := c.check(); err != nil {
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
	recs = append(recs, changelog.StateRecordOf(rec))
	if err := c.write(ctx, recs...); err != nil {
		return err
	}
	c.e.log.Info("topology in force", zap.String("fingerprint", own))
	return c.load(ctx)
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
