package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/rebalance"
	"github.com/tidemark/tidemark/topology"
)

// startUp checks what the app needs before it joins: the broker's features, the ids of its sub-topologies, its
// topics. Missing internal topics are created, everything else that differs is refused with its repair.
func (e *Engine) startUp(ctx context.Context) error {
	if err := e.features(ctx); err != nil {
		return err
	}
	have, err := e.describe(ctx, e.plannedTopics())
	if err != nil {
		return err
	}
	e.control = newControl(e)
	if err := e.control.load(ctx); err != nil {
		return err
	}
	if err := e.control.check(); err != nil {
		ue, ok := errors.AsType[*UpgradeError](err)
		if !ok {
			return err
		}
		return e.waitOnly(ue, have)
	}
	counts, err := e.counts(have)
	if err != nil {
		return err
	}
	if err := e.control.create(ctx); err != nil {
		return err
	}
	ids, err := e.control.inherit()
	if err != nil {
		return fmt.Errorf("tidemark: %w: %w", ErrIncompatible, err)
	}
	e.control.tasks = counts.Subs
	if err := e.buildSubs(counts, ids, have); err != nil {
		return err
	}
	e.connect()
	if err := e.topics(ctx, counts); err != nil {
		return err
	}
	e.balance()
	return nil
}

// balance makes the group balancer.
func (e *Engine) balance() {
	e.balancer = rebalance.NewBalancer(rebalance.Config{
		Self:         e.self,
		InForce:      e.control.inForce,
		Format:       e.control.format,
		OnAssignment: e.mgr.onAssignment,
	})
}

// waitOnly prepares an instance that cannot take over: it joins with the input topics that exist, and has no tasks.
func (e *Engine) waitOnly(err *UpgradeError, have map[string]changelog.Have) error {
	e.control.refuse(err)
	e.byTopic = make(map[string]*sub)
	for _, s := range e.plan.Subs {
		for _, src := range s.Sources {
			if _, ok := have[src.Topic]; ok && src.Topic != "" {
				e.byTopic[src.Topic] = nil
			}
		}
	}
	if len(e.byTopic) == 0 {
		return err
	}
	e.connect()
	e.balance()
	return nil
}

// features reads the finalized transaction.version: what a broker advertises per request says nothing.
func (e *Engine) features(ctx context.Context) error {
	if err := e.admin.Ping(ctx); err != nil {
		return fmt.Errorf("tidemark: no broker answers: %w", err)
	}
	md, err := kadm.NewClient(e.admin).BrokerMetadata(ctx)
	if err != nil {
		return fmt.Errorf("tidemark: %w", err)
	}
	// On a real broker only deleted records move the start of a compacted log; the in-process one moves it when
	// it compacts.
	e.startMoves = md.Cluster == "kfake"
	if e.cfg.Guarantee == AtLeastOnce {
		return nil
	}
	v, err := changelog.TransactionVersion(ctx, e.admin)
	if err != nil {
		return fmt.Errorf("tidemark: %w", err)
	}
	e.tv2 = v >= 2
	versions, err := kadm.NewClient(e.admin).ApiVersions(ctx)
	if err != nil {
		return fmt.Errorf("tidemark: %w", err)
	}
	for _, b := range versions {
		if b.Err != nil {
			continue
		}
		// Version 3 carries member and generation (KIP-447, Kafka 2.5).
		if _, max, ok := b.KeyVersions(28); !ok || max < 3 {
			return fmt.Errorf("tidemark: %w: exactly-once needs Kafka 2.5 or later; use AtLeastOnce or upgrade the broker", ErrNoTransactions)
		}
		if _, max, ok := b.KeyVersions(61); !ok || max < 0 {
			return fmt.Errorf("tidemark: %w: exactly-once needs DescribeProducers (Kafka 2.8 or later)", ErrNoTransactions)
		}
	}
	if !e.tv2 {
		e.log.Warn("the broker runs transaction.version below 2: producers are initialised anew after every unclear answer; upgrade the feature with kafka-features.sh",
			zap.Int("version", v))
	}
	return nil
}

// plannedTopics returns the topics of others that the topology reads and writes.
func (e *Engine) plannedTopics() []string {
	var out []string
	for _, s := range e.plan.Subs {
		for _, src := range s.Sources {
			if src.Topic != "" {
				out = append(out, src.Topic)
			}
		}
		for _, k := range s.Sinks {
			if k.Topic != "" {
				out = append(out, k.Topic)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// describe returns the topics that exist, by name, with their configs.
func (e *Engine) describe(ctx context.Context, names []string) (map[string]changelog.Have, error) {
	have, err := changelog.DescribeTopics(ctx, e.admin, names, true)
	if err != nil {
		if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
			return nil, fmt.Errorf("tidemark: %w: %w; grant DESCRIBE and DESCRIBE_CONFIGS on the topics it names", ErrNotAuthorized, err)
		}
		return nil, fmt.Errorf("tidemark: %w", err)
	}
	out := make(map[string]changelog.Have, len(have))
	for _, h := range have {
		out[h.Topic] = h
	}
	return out, nil
}

// counts derives tasks and partitions, and reports every missing or mismatched topic at once.
func (e *Engine) counts(have map[string]changelog.Have) (topology.Counts, error) {
	var errs []error
	n := make(map[string]int)
	for _, t := range e.plannedTopics() {
		h, ok := have[t]
		if !ok {
			errs = append(errs, fmt.Errorf("tidemark: topic %s: %w; create it: kafka-topics.sh --bootstrap-server <brokers> --create --topic %s --partitions <n>", t, ErrTopicMissing, t))
			continue
		}
		n[t] = int(h.Partitions)
		if e.names.Reserved(t) {
			errs = append(errs, fmt.Errorf("tidemark: topic %s has the form of an internal topic of app %s; rename it or the app", t, e.cfg.App))
		}
	}
	if len(errs) > 0 {
		return topology.Counts{}, errors.Join(errs...)
	}
	c, err := topology.CheckPartitions(e.plan, n)
	if errors.Is(err, topology.ErrPartitionMismatch) {
		return c, fmt.Errorf("tidemark: %w: %w", ErrPartitionMismatch, err)
	}
	return c, err
}

// buildSubs gives every sub-topology its names and counts.
func (e *Engine) buildSubs(counts topology.Counts, ids map[string]string, have map[string]changelog.Have) error {
	e.subs, e.byTopic = nil, make(map[string]*sub)
	for _, ts := range e.plan.Subs {
		s := &sub{Sub: ts, id: ids[ts.ID], tasks: int32(counts.Subs[ts.ID]), topicIDs: make(map[string][16]byte)}
		s.progress = e.names.Progress(s.id)
		for _, src := range ts.Sources {
			name, n := src.Topic, int32(have[src.Topic].Partitions)
			if src.Repartition != "" {
				name, n = e.names.Repartition(src.Repartition), int32(counts.Repartitions[src.Repartition])
			}
			s.sources = append(s.sources, name)
			s.partitions = append(s.partitions, n)
			e.byTopic[name] = s
		}
		for _, k := range ts.Sinks {
			st := sinkTopic{name: k.Topic, partitions: int32(have[k.Topic].Partitions)}
			if k.Repartition != "" {
				st.name, st.partitions = e.names.Repartition(k.Repartition), int32(counts.Repartitions[k.Repartition])
			}
			s.sinks = append(s.sinks, st)
		}
		for i, spec := range ts.Stores {
			if !spec.Changelog {
				s.changelogOf = append(s.changelogOf, -1)
				continue
			}
			s.changelogOf = append(s.changelogOf, len(s.changelogs))
			s.changelogs = append(s.changelogs, changelogTopic{store: i, name: e.names.Changelog(spec.ID)})
		}
		if n := len(s.changelogs); n > changelog.MaxMetadataEnds {
			return fmt.Errorf("tidemark: sub-topology %s has %d stores, at most %d fit beside a committed offset; cut it with a KeyBy", s.id, n, changelog.MaxMetadataEnds)
		}
		s.records = e.cfg.Metrics.records.WithLabelValues(s.id)
		e.subs = append(e.subs, s)
	}
	e.describeStores()
	return nil
}

// topics verifies the app's own topics and creates those that are missing.
func (e *Engine) topics(ctx context.Context, counts topology.Counts) error {
	var want []changelog.Want
	largest := int32(1)
	inputs := make(map[string]string) // by topic whose partition count follows from them
	for _, s := range e.subs {
		want = append(want, changelog.WantProgress(s.progress, s.tasks))
		inputs[s.progress] = strings.Join(s.sources, ", ")
		for cl, c := range s.changelogs {
			want = append(want, s.wantChangelog(cl))
			inputs[c.name] = inputs[s.progress]
		}
		for i, src := range s.Sources {
			if src.Repartition != "" {
				want = append(want, changelog.WantRepartition(s.sources[i], s.partitions[i]))
			}
			largest = max(largest, s.partitions[i])
		}
	}
	if e.cfg.OnError == DeadLetter {
		want = append(want, changelog.WantDeadLetter(e.names.DeadLetter(), 0))
	}
	if e.timed() {
		want = append(want, changelog.WantLate(e.names.Late(), 0))
	}
	var names []string
	for _, w := range want {
		names = append(names, w.Topic)
	}
	if err := e.clashes(ctx, names); err != nil {
		return err
	}
	have, err := e.describe(ctx, names)
	if err != nil {
		return err
	}
	missing, bad := changelog.Verify(want, values(have))
	if len(bad) > 0 {
		var errs []error
		for _, m := range bad {
			kind := ErrTopicConfig
			if m.Field == "partitions" {
				kind = ErrPartitionMismatch
			}
			if in := inputs[m.Topic]; in != "" && kind == ErrPartitionMismatch {
				errs = append(errs, fmt.Errorf("tidemark: %w: inputs are %s: %w", kind, in, m))
				continue
			}
			errs = append(errs, fmt.Errorf("tidemark: %w: %w", kind, m))
		}
		return errors.Join(errs...)
	}
	for i := range missing {
		if c := missing[i].Class; c == changelog.DeadLetter || c == changelog.Late {
			missing[i].Partitions = largest
		}
	}
	if err := e.create(ctx, missing); err != nil {
		return err
	}
	return e.limits(ctx, names)
}

// clashes refuses names that another app on the cluster could use as well.
func (e *Engine) clashes(ctx context.Context, names []string) error {
	all, err := kadm.NewClient(e.admin).ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("tidemark: list topics: %w", err)
	}
	if err := e.names.CheckClashes(names, all.Names()); err != nil {
		return fmt.Errorf("tidemark: %w", err)
	}
	return nil
}

// create makes internal topics. Another instance may be doing the same.
func (e *Engine) create(ctx context.Context, missing []changelog.Want) error {
	if len(missing) == 0 {
		return nil
	}
	for i := range missing {
		missing[i].Replicas = e.cfg.Replicas
	}
	if err := changelog.CreateTopics(ctx, e.admin, missing); err != nil {
		if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
			return fmt.Errorf("tidemark: %w: %w; grant CREATE on topics with prefix %s-, or create them beforehand", ErrNotAuthorized, err, e.cfg.App)
		}
		return fmt.Errorf("tidemark: %w", err)
	}
	var names []string
	for _, w := range missing {
		names = append(names, w.Topic)
	}
	e.log.Info("topics created", zap.Strings("topics", names))
	// The answer comes before every broker knows the topic.
	for {
		have, err := e.describe(ctx, names)
		if err == nil && len(have) == len(names) || errors.Is(err, ErrNotAuthorized) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.cfg.Clock.After(20 * time.Millisecond):
		}
	}
}

// limits reads what the broker would refuse on the topics the app writes, and the ids of those it reads.
func (e *Engine) limits(ctx context.Context, internal []string) error {
	have, err := e.describe(ctx, append(e.plannedTopics(), internal...))
	if err != nil {
		return err
	}
	e.maxBytes = make(map[string]int)
	for name, h := range have {
		e.maxBytes[name] = int(config(h, "max.message.bytes", 1048588))
	}
	for _, s := range e.subs {
		for i := range s.sinks {
			h := have[s.sinks[i].name]
			s.sinks[i].maxBytes = e.maxBytes[h.Topic]
			s.sinks[i].maxAheadMs = config(h, "message.timestamp.after.max.ms", 1<<62)
			s.sinks[i].maxAgeMs = config(h, "message.timestamp.before.max.ms", 1<<62)
		}
		for i := range s.changelogs {
			s.changelogs[i].maxBytes = e.maxBytes[s.changelogs[i].name]
		}
		for _, src := range s.sources {
			s.topicIDs[src] = have[src].ID
		}
		for _, c := range s.changelogs {
			s.topicIDs[c.name] = have[c.name].ID
		}
		s.topicIDs[s.progress] = have[s.progress].ID
		s.ids = sortedIDs(s.topicIDs)
	}
	if e.cfg.OnError == DeadLetter {
		h := have[e.names.DeadLetter()]
		e.deadLetters = sinkTopic{name: h.Topic, partitions: max(h.Partitions, 1), maxBytes: e.maxBytes[h.Topic]}
	}
	if e.timed() {
		h := have[e.names.Late()]
		e.late = sinkTopic{name: h.Topic, partitions: max(h.Partitions, 1), maxBytes: e.maxBytes[h.Topic]}
	}
	return nil
}

// sortedIDs is a set of topic ids as a progress record lists it.
func sortedIDs(m map[string][16]byte) []changelog.TopicID {
	var out []changelog.TopicID
	for name, id := range m {
		out = append(out, changelog.TopicID{Topic: name, ID: id})
	}
	slices.SortFunc(out, func(a, b changelog.TopicID) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}

// config returns a numeric config of a topic, or def where the broker does not say.
func config(h changelog.Have, key string, def int64) int64 {
	v, err := strconv.ParseInt(strings.TrimSpace(h.Configs[key]), 10, 64)
	if err != nil {
		return def
	}
	return v
}

func values(m map[string]changelog.Have) []changelog.Have {
	out := make([]changelog.Have, 0, len(m))
	for _, h := range m {
		out = append(out, h)
	}
	return out
}

// self is what this member tells the leader.
func (e *Engine) self() rebalance.MemberData {
	d := rebalance.MemberData{
		Instance: e.instance, Endpoint: e.cfg.Endpoint, Rack: e.cfg.Rack, Workers: len(e.workers),
		TransactionalPrefix: e.names.TransactionalPrefix(e.instance),
		StateFingerprint:    e.plan.StateFingerprint, BuildFingerprint: e.plan.BuildFingerprint,
	}
	for _, s := range e.subs {
		topics := slices.Clone(s.sources)
		slices.Sort(topics)
		d.Subs = append(d.Subs, rebalance.Sub{ID: s.id, Topics: topics})
	}
	slices.SortFunc(d.Subs, func(a, b rebalance.Sub) int { return strings.Compare(a.ID, b.ID) })
	return d
}
