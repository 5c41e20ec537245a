package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
)

// crashCases is the matrix: the numbered steps of the commit protocol, and what has to happen there.
func crashCases() []crashCase {
	cases := []crashCase{
		{name: "K0", what: "kill -9 before the first commit", run: killAt("K0", 1)},
		{name: "K1", what: "kill -9 after poll, before processing", run: killAt("K1", 40)},
		{name: "K2", what: "kill -9 in the middle of a batch", run: killAt("K2", 2)},
		{name: "K3", what: "kill -9 with part of the transaction produced", run: killAt("K3", 7)},
		{name: "K4", what: "kill -9 after the flush, offsets not sent", run: killAt("K4", 9)},
		{name: "K5", what: "kill -9 after the offsets, EndTxn not sent", run: killAt("K5", 9)},
		{name: "K6", what: "kill -9 with EndTxn answered, the answer not looked at", run: killAt("K6", 9)},
		{name: "K7", what: "kill -9 after the commit, nothing applied", run: killAt("K7", 9)},
		{name: "K8", what: "kill -9 while the committed layer is written", run: killAt("K8", 3)},
		{name: "K9", what: "kill -9 with the layer written, not acknowledged", run: killAt("K9", 3)},
		{name: "K10", what: "kill -9 with a checkpoint made, nothing uploaded", snap: true, run: killAt("K10", 9)},
		{name: "K11", what: "kill -9 with files uploaded, the manifest not", snap: true, run: killAt("K11", 9)},
		{name: "K12", what: "kill -9 with the manifest uploaded, not published", snap: true, run: killAt("K12", 9)},
		{name: "K13", what: "kill -9 while old snapshots are deleted", snap: true, run: killAt("K13", 3)},
		{name: "K14", what: "kill -9 while a snapshot is fetched first", snap: true, run: killInRestore("K14", 3, tidemark.RestoreFull)},
		{name: "K14/lazy", what: "kill -9 while a lazily opened snapshot is fetched", snap: true, run: killInRestore("K14", 30, tidemark.RestoreLazy)},
		{name: "K15", what: "kill -9 while the changelogs behind a snapshot are replayed", snap: true, run: killInRestore("K15", 1, tidemark.RestoreFull)},
		{name: "K17", what: "kill -9 in the revoke callback, before the last commit", run: killInRevoke("K17")},
		{name: "K17b", what: "kill -9 in the revoke callback, after the last commit", run: killInRevoke("K17b")},
		{name: "K18/K3", what: "SIGSTOP beyond the session while producing, SIGCONT", run: zombieAt("K3", 7)},
		{name: "K18/K5", what: "SIGSTOP beyond the session before EndTxn, SIGCONT", run: zombieAt("K5", 9)},
		{name: "K18/K7", what: "SIGSTOP beyond the session after the commit, SIGCONT", run: zombieAt("K7", 9)},
		{name: "unknown", what: "outcome of EndTxn unknown while another instance takes over", run: unknownOutcome},
		{name: "hanging", what: "revoke during a hanging EndTxn", run: hangingEnd},
		{name: "offsets", what: "group offsets rewritten from outside: ErrOffsetsChanged", run: offsetsChanged},
	}
	for _, k := range []string{"K4", "K5", "K6", "K7"} {
		cases = append(cases, crashCase{name: k + "/tv1", what: "kill -9, transaction.version 1", tv1: true, run: killAt(k, 9)})
	}
	return cases
}

// killAt kills instance a at a point, checks its databases as the kill has left them, lets another instance
// take over and a itself come back.
func killAt(point string, hit int) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		if err := s.produce(ctx, 900); err != nil {
			return err
		}
		sp := s.spec("a")
		sp.Point, sp.Hit, sp.Action = point, hit, actionKill
		a, err := s.start(sp)
		if err != nil {
			return err
		}
		if err := s.trickle(ctx, a, "the kill at "+point, func() (bool, error) { return a.ended(), nil }); err != nil {
			return err
		}
		return s.goOn(ctx, a)
	}
}

// killInRestore lets instance a make snapshots and die with its disk, and kills b in the middle of its restore from them.
func killInRestore(point string, hit int, mode tidemark.RestoreMode) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		a, err := s.running1(ctx, s.spec("a"))
		if err != nil {
			return err
		}
		if err := s.trickle(ctx, a, "snapshots", func() (bool, error) {
			n, err := a.count("snapshot published")
			return n >= 4*partitions, err
		}); err != nil {
			return err
		}
		if err := s.produce(ctx, 60_000); err != nil { // what the last snapshots lack
			return err
		}
		if err := a.await(ctx, "the end of the inputs", func() (bool, error) {
			reason, err := s.eye.Quiet(ctx)
			return reason == "", err
		}); err != nil {
			return err
		}
		if err := a.kill(); err != nil {
			return err
		}
		s.gone(a)
		if err := s.compare(ctx, "a"); err != nil {
			return err
		}
		if err := os.RemoveAll(a.spec.Dir); err != nil {
			return err
		}
		sp := s.spec("b")
		sp.Restore, sp.Point, sp.Hit, sp.Action = mode, point, hit, actionKill
		b, err := s.start(sp)
		if err != nil {
			return err
		}
		if err := s.trickle(ctx, b, "the kill at "+point, func() (bool, error) { return b.ended(), nil }); err != nil {
			return err
		}
		return s.goOn(ctx, b)
	}
}

// goOn is what follows the death of an instance: its databases are checked, another one takes over, it comes back.
func (s *scene) goOn(ctx context.Context, a *instance) error {
	<-a.done
	s.gone(a)
	if !a.killed() {
		return fmt.Errorf("a ended by itself: %v\n%s", a.err, a.tail(8))
	}
	name := a.spec.Name
	if err := s.compare(ctx, name); err != nil {
		return err
	}
	if err := s.produce(ctx, 900); err != nil {
		return err
	}
	other := "b"
	if name == other {
		other = "a"
	}
	if !s.has(other) {
		if _, err := s.start(s.spec(other)); err != nil {
			return err
		}
	}
	again, err := s.start(s.spec(name))
	if err != nil {
		return err
	}
	if err := again.awaitLog(ctx, "instance running"); err != nil {
		return err
	}
	return s.produce(ctx, 900)
}

func (s *scene) has(name string) bool {
	for _, i := range s.running {
		if i.spec.Name == name {
			return true
		}
	}
	return false
}

// killInRevoke kills instance a in its revoke callback: b has joined.
func killInRevoke(point string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		sp := s.spec("a")
		sp.Point, sp.Hit, sp.Action = point, 1, actionKill
		a, err := s.running1(ctx, sp)
		if err != nil {
			return err
		}
		if _, err := s.start(s.spec("b")); err != nil {
			return err
		}
		if err := s.trickle(ctx, a, "the kill at "+point, func() (bool, error) { return a.ended(), nil }); err != nil {
			return err
		}
		return s.goOn(ctx, a)
	}
}

// running1 produces and starts an instance and returns when it runs.
func (s *scene) running1(ctx context.Context, sp spec) (*instance, error) {
	if err := s.produce(ctx, 900); err != nil {
		return nil, err
	}
	a, err := s.start(sp)
	if err != nil {
		return nil, err
	}
	return a, a.awaitLog(ctx, "instance running")
}

// zombieAt freezes instance a at a point for two sessions, in which b takes over, and lets it go on.
func zombieAt(point string, hit int) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		if err := s.produce(ctx, 900); err != nil {
			return err
		}
		sp := s.spec("a")
		sp.Point, sp.Hit, sp.Action = point, hit, actionStop
		a, err := s.start(sp)
		if err != nil {
			return err
		}
		if err := s.trickle(ctx, a, "the stop at "+point, func() (bool, error) { return a.standsStill(), nil }); err != nil {
			return err
		}
		return s.wake(ctx, a)
	}
}

// wake lets another instance take over from the frozen a, and then a go on.
func (s *scene) wake(ctx context.Context, a *instance) error {
	if !s.has("b") {
		if _, err := s.start(s.spec("b")); err != nil {
			return err
		}
	}
	b := s.running[len(s.running)-1]
	if err := s.produce(ctx, 900); err != nil {
		return err
	}
	// b has everything when the session of a is over.
	asleep := time.Now()
	if err := b.await(ctx, "the take-over", func() (bool, error) {
		reason, err := s.eye.Quiet(ctx)
		return reason == "" && time.Since(asleep) > 2*a.spec.Session, err
	}); err != nil {
		return err
	}
	if err := s.produce(ctx, 300); err != nil {
		return err
	}
	if err := a.signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := s.produce(ctx, 900); err != nil {
		return err
	}
	// It hears of its death, rejoins and works again.
	return s.trickle(ctx, a, "the zombie's return", func() (bool, error) { return a.logged("task lost") })
}

// unknownOutcome lets the EndTxn of instance a arrive without an answer until its client gives up; then a
// stands still while b takes over and commits under the same numbers, and only after that a asks what became
// of its transaction.
func unknownOutcome(ctx context.Context, s *scene) error {
	sp := s.spec("a")
	sp.EndTxn, sp.EndTxnHit, sp.Hang = endLost, 9, 6*time.Second
	sp.Point, sp.Hit, sp.Action = "K6", 1, actionStop
	if err := s.produce(ctx, 900); err != nil {
		return err
	}
	a, err := s.start(sp)
	if err != nil {
		return err
	}
	if err := s.trickle(ctx, a, "the stop at K6", func() (bool, error) { return a.standsStill(), nil }); err != nil {
		return err
	}
	if err := s.wake(ctx, a); err != nil {
		return err
	}
	return a.awaitLog(ctx, "transaction outcome unknown")
}

// hangingEnd holds an EndTxn of instance a back while b joins: the revoke callback runs out of its budget, and
// the request arrives when b may own the partitions.
func hangingEnd(ctx context.Context, s *scene) error {
	sp := s.spec("a")
	sp.EndTxn, sp.EndTxnHit, sp.Hang = endHang, 9, 6*time.Second
	if err := s.produce(ctx, 900); err != nil {
		return err
	}
	a, err := s.start(sp)
	if err != nil {
		return err
	}
	if err := s.trickle(ctx, a, "EndTxn", func() (bool, error) { return a.logged("disturbing EndTxn") }); err != nil {
		return err
	}
	if _, err := s.start(s.spec("b")); err != nil {
		return err
	}
	if err := s.trickle(ctx, a, "the revoke budget", func() (bool, error) { return a.logged("revoked tasks did not finish in time") }); err != nil {
		return err
	}
	return s.produce(ctx, 900)
}

// offsetsChanged rewrites the group's offsets while no instance runs. The next start must refuse with
// ErrOffsetsChanged; with the offsets back as they were everything goes on.
func offsetsChanged(ctx context.Context, s *scene) error {
	a, err := s.running1(ctx, s.spec("a"))
	if err != nil {
		return err
	}
	if _, err := s.eye.Settle(ctx); err != nil {
		return err
	}
	if err := s.stop(a); err != nil {
		return err
	}
	cl, err := kgo.NewClient(s.client...)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	was, err := adm.FetchOffsets(ctx, s.app())
	if err != nil {
		return err
	}
	var is, back kadm.Offsets
	was.Each(func(o kadm.OffsetResponse) {
		back.Add(o.Offset)
		changed := o.Offset
		changed.Metadata = ""
		changed.At = max(0, o.At-10)
		is.Add(changed)
	})
	if err := adm.CommitAllOffsets(ctx, s.app(), is); err != nil {
		return err
	}
	refused, err := s.start(s.spec("a"))
	if err != nil {
		return err
	}
	select {
	case <-refused.done:
	case <-ctx.Done():
		return fmt.Errorf("%w: an instance runs on changed offsets\n%s", ctx.Err(), refused.tail(8))
	}
	s.gone(refused)
	if refused.code() != exitOffsetsChanged {
		return fmt.Errorf("changed offsets: exit code %d, want %d\n%s", refused.code(), exitOffsetsChanged, refused.tail(8))
	}
	if err := adm.CommitAllOffsets(ctx, s.app(), back); err != nil {
		return err
	}
	if _, err := s.start(s.spec("a")); err != nil {
		return err
	}
	return s.produce(ctx, 900)
}
