package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/internal/verify/witness"
	"github.com/tidemark/tidemark/internal/verify/workload"
)

// scene is one app on a broker, with its inputs, its instances and its witness.
type scene struct {
	name   string
	broker string
	set    string // of workloads
	client []kgo.Opt
	dir    string
	bucket string // endpoint of the S3 server that snapshots go to; empty for none
	topics workload.Topics
	load   *witness.Loader
	eye    *witness.Witness

	specs     map[string]spec // of every instance that ever ran, by name
	running   []*instance
	all       []*instance
	stores    int // databases compared
	snapshots int // of them made of snapshots
	report    check.Report
}

const (
	partitions = 4
	keys       = 200
)

// load says what the inputs of a scene are.
type load struct {
	set  string        // of workloads
	one  int           // one of so many inputs is an event, if the set has others as well
	step time.Duration // how far the time of events moves on per event
	seed uint64
}

// newScene makes the topics.
func newScene(ctx context.Context, broker, name, dir string, l load) (*scene, error) {
	s := &scene{
		name: name, broker: broker, set: l.set, client: []kgo.Opt{kgo.SeedBrokers(broker)}, dir: filepath.Join(dir, name),
		specs: make(map[string]spec),
	}
	s.topics = topicsOf(l.set, name, s.app())
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	if err := witness.CreateTopics(ctx, s.client, s.topics, partitions); err != nil {
		return nil, err
	}
	gen := workload.NewGenerator(s.topics, keys, newRand(l.seed))
	if s.topics.Events() {
		gen.WithEvents(l.one, l.step)
	}
	var err error
	if s.load, err = witness.NewLoader(s.client, gen); err != nil {
		return nil, err
	}
	if s.eye, err = witness.New(s.client, s.app(), s.topics, s.load); err != nil {
		s.load.Close()
		return nil, err
	}
	return s, nil
}

func (s *scene) app() string { return s.name + ".app" }

// close ends everything that still runs.
func (s *scene) close() {
	for _, i := range s.running {
		_ = i.kill()
	}
	s.eye.Close()
	s.load.Close()
}

// spec returns the settings of an instance. The same name is the same state directory.
func (s *scene) spec(name string) spec {
	return spec{
		Name: name, Broker: s.broker, App: s.app(), Prefix: s.name, Set: s.set, Dir: filepath.Join(s.dir, name), Workers: 2,
		Bucket: s.bucket, Snapshots: 2 * time.Second, Restore: tidemark.RestoreLazy, Grace: 3 * time.Second,
		Session: 3 * time.Second, Heartbeat: 300 * time.Millisecond, Transaction: 10 * time.Second, Revoke: 2 * time.Second,
	}
}

func (s *scene) start(sp spec) (*instance, error) {
	i, err := launch(sp, filepath.Join(s.dir, "logs"))
	if err != nil {
		return nil, err
	}
	s.specs[sp.Name] = sp
	s.running = append(s.running, i)
	s.all = append(s.all, i)
	return i, nil
}

// gone forgets an instance that has ended.
func (s *scene) gone(i *instance) {
	for n, r := range s.running {
		if r == i {
			s.running = append(s.running[:n], s.running[n+1:]...)
			return
		}
	}
}

func (s *scene) stop(i *instance) error {
	defer s.gone(i)
	return i.stop(40 * time.Second)
}

// produce sends n inputs and waits for their acknowledgement.
func (s *scene) produce(ctx context.Context, n int) error {
	return errors.Join(s.load.Produce(ctx, n), s.load.Flush(ctx))
}

// trickle produces small portions until cond holds.
func (s *scene) trickle(ctx context.Context, i *instance, what string, cond func() (bool, error)) error {
	return i.await(ctx, what, func() (bool, error) {
		if ok, err := cond(); ok || err != nil {
			return ok, err
		}
		return false, s.produce(ctx, 60)
	})
}

// verdict is the report on one line, with the number of panes if windows were part of it.
func (s *scene) verdict() string {
	if r := &s.report; s.topics.Events() {
		return fmt.Sprintf("lost %d duplicated %d panes %d wrong %d", r.Lost, r.Duplicated, s.eye.Panes(), r.Wrong)
	}
	return s.report.String()
}

// compare checks the databases of the named instances, which must not run.
func (s *scene) compare(ctx context.Context, names ...string) error {
	var specs []spec
	for _, n := range names {
		specs = append(specs, s.specs[n])
	}
	r, n, err := compareDisks(ctx, s.client, specs)
	if err != nil {
		return err
	}
	s.stores += n
	s.report.Add(r)
	return nil
}

// finish lets the inputs end, processes the rest, stops all instances, and takes the last look: after it nothing can be
// added.
func (s *scene) finish(ctx context.Context) error {
	if err := s.load.End(ctx); err != nil {
		return err
	}
	r, err := s.eye.Settle(ctx)
	if err != nil {
		s.report.Add(r)
		for _, i := range s.running {
			err = fmt.Errorf("%w\n%s: %s", err, i.spec.Name, i.tail(4))
		}
		return err
	}
	for len(s.running) > 0 {
		if err := s.stop(s.running[0]); err != nil {
			return err
		}
	}
	if err := s.eye.CatchUp(ctx); err != nil {
		return err
	}
	s.report.Add(s.eye.Done())
	reason, err := s.eye.Quiet(ctx)
	if err != nil {
		return err
	}
	if reason != "" {
		s.report.Wrongly("after the last instance has stopped: %s", reason)
	}
	var names []string
	for n := range s.specs {
		names = append(names, n)
	}
	if err := s.compare(ctx, names...); err != nil || s.bucket == "" {
		return err
	}
	return s.compareSnapshots(ctx)
}
