package engine

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/watermark"
)

// A partition that nobody writes to would hold the watermark back for ever, so the tasks are told when one is silent. That
// nothing was fetched proves nothing: the partition may be paused, its leader out of reach, or an open transaction may
// hide its records. The prober therefore asks the broker where the partition ends (watermark.Idleness has the rules), and
// the worker has the last word: it knows whether a record has come since.

// prober finds out which input partitions are silent. Only its own goroutine uses it.
type prober struct {
	e      *Engine
	states map[*input]*silence
}

// silence is what the prober knows of one partition.
type silence struct {
	state    watermark.Idleness
	round    uint64 // of the input, when state was made
	arrivals uint64 // of the input, as of the last look
	told     bool   // the worker was told, and nothing has come since
	early    bool   // one proof is enough, so the first question need not wait
}

const (
	probePeriod  = 250 * time.Millisecond // between two looks at what the instance itself knows
	probeTimeout = time.Second            // of one question to the brokers
)

// probe is the prober's goroutine. An app without event time has none.
func (e *Engine) probe(ctx context.Context) {
	period := probePeriod
	for _, s := range e.subs {
		for i := range s.Sources {
			if set := s.settings(i); set != nil && set.IdleAfter > 0 {
				period = max(min(period, set.IdleAfter/16), 10*time.Millisecond)
			}
		}
	}
	p := &prober{e: e, states: make(map[*input]*silence)}
	tick := e.cfg.Clock.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
			p.look(ctx)
		}
	}
}

// settings returns how the records of a source tell the time; nil if nobody asks for it, and for a repartition.
func (s *sub) settings(source int) *watermark.Settings {
	if !s.Timed {
		return nil
	}
	return s.Sources[source].Time
}

// look takes in what has happened since the last time and asks the brokers about partitions that may be silent.
func (p *prober) look(ctx context.Context) {
	now := p.e.steady()
	live := make(map[*input]bool, len(p.states))
	ask := make(map[changelog.TopicPartition]question)
	for _, t := range p.e.mgr.snapshot() {
		if TaskState(t.phase.Load()) != Running || t.lease.lost() {
			continue
		}
		for _, in := range t.inputs {
			set := t.sub.settings(in.source)
			if set == nil {
				continue
			}
			live[in] = true
			s := p.note(in, set, now)
			idle, next := s.state.Idle(now)
			if idle && !s.told {
				p.tell(in, s)
			}
			if at := in.rest.Load(); at >= 0 && (next <= now || s.early && next < watermark.Finished) {
				ask[changelog.TopicPartition{Topic: in.topic, Partition: in.partition}] = question{in, s, at}
			}
		}
	}
	for in := range p.states {
		if !live[in] {
			delete(p.states, in)
		}
	}
	if len(ask) > 0 {
		p.ask(ctx, ask)
	}
}

// note feeds the state of an input with what the instance knows.
func (p *prober) note(in *input, set *watermark.Settings, now int64) *silence {
	s, round, arrivals := p.states[in], in.round.Load(), in.arrivals.Load()
	if s == nil || s.round != round {
		// What is read again after an abort has been read before: silence that was proven then holds once it is proven again.
		resume := in.before.Load() == arrivals && (in.wasIdle.Load() || s != nil && s.told && s.arrivals == arrivals)
		s = &silence{state: watermark.NewIdleness(now, set.IdleAfter), round: round, arrivals: arrivals, early: resume || in.unseen.Load()}
		if resume {
			s.state.Resume()
		}
		p.states[in] = s
	}
	if arrivals != s.arrivals {
		s.arrivals, s.told, s.early = arrivals, false, false
		s.state.Record(now)
	}
	s.state.Paused(now, in.paused.Load())
	s.state.Buffered(now, in.q.bytes.Load() > 0)
	return s
}

// question is what the brokers are asked about one partition.
type question struct {
	in *input
	s  *silence
	at int64 // the worker's position when its queue was last empty
}

// ask asks for the ends of the partitions and takes in the answers.
func (p *prober) ask(ctx context.Context, questions map[changelog.TopicPartition]question) {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var parts []changelog.TopicPartition
	for tp := range questions {
		parts = append(parts, tp)
	}
	bounds := changelog.Probe(limited, p.e.admin, parts)
	if ctx.Err() != nil {
		return
	}
	now := p.e.steady()
	var unused []changelog.TopicPartition
	for tp, q := range questions {
		b, ok := bounds[tp]
		proof := ok && q.at >= b.LastStable && b.LastStable == b.HighWatermark
		q.in.hidden.Store(ok && b.LastStable < b.HighWatermark)
		q.s.state.Probed(now, proof)
		q.s.early = q.s.early && !ok
		if proof && q.in.unseen.Load() && q.in.arrivals.Load() == 0 {
			unused = append(unused, tp)
		}
	}
	if len(unused) > 0 {
		starts, err := changelog.ListStarts(limited, p.e.admin, unused)
		for _, tp := range unused {
			if q := questions[tp]; err == nil && starts[tp] >= bounds[tp].HighWatermark {
				q.s.state.Empty(now)
			}
		}
	}
	for _, q := range questions {
		if idle, _ := q.s.state.Idle(now); idle && !q.s.told {
			p.tell(q.in, q.s)
		}
	}
}

// tell asks the worker to count a partition as silent, unless something has come in the meantime.
func (p *prober) tell(in *input, s *silence) {
	s.told = true
	t, round, arrivals := in.task, s.round, s.arrivals
	t.worker.post(func() {
		if TaskState(t.phase.Load()) != Running || t.lease.lost() || t.proc == nil {
			return
		}
		if in.round.Load() != round || in.head() != nil || in.arrivals.Load() != arrivals || t.proc.Idle(in.source) {
			return
		}
		t.proc.SetIdle(in.source)
		t.dirty = true // a restart must know
		p.e.log.Info("input is silent and holds no watermark back", zap.String("topic", in.topic), zap.Int32("partition", in.partition))
	})
}
