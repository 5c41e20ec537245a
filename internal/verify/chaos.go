package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tidemark/tidemark/internal/kafkatest"
)

type chaosOptions struct {
	Minutes float64
	Fault   string // of the broker: none, kill, pause, both
	Set     string // of workloads
	Rate    int    // inputs per second
	Seed    uint64
	Keep    string
}

// chaosRun is a run of instances under random faults.
type chaosRun struct {
	o      chaosOptions
	rng    *rand.Rand
	broker *kafkatest.Broker
	s      *scene
	start  time.Time
	faults map[string]int
	quiet  int
	frozen map[*instance]time.Time // until when
	next   int                     // number of the next new instance
	hold   atomic.Bool             // the load stands still
}

const (
	chaosInstances = 3
	quietEvery     = 60 * time.Second
	quietLimit     = 100 * time.Second
	brokerPause    = 12 * time.Second

	// eventCost is how much more an event costs than another input: it changes six windows in each of three modes and three more. One of
	// so many inputs is an event, or the rate is so much lower.
	eventCost = 25
	// eventStep is how far the time of events moves on per event: some 80 minutes a second at the usual rate.
	eventStep = 24 * time.Second
)

func runChaos(ctx context.Context, o chaosOptions) error {
	profile := kafkatest.Kill
	switch o.Fault {
	case "none", "kill":
	case "pause", "both":
		profile = kafkatest.Stop
	default:
		return fmt.Errorf("unknown fault %q", o.Fault)
	}
	inputs := load{set: o.Set, one: eventCost, step: eventStep}
	switch o.Set {
	case setBank, setBoth:
	case setEvents:
		o.Rate = max(1, o.Rate/eventCost)
	default:
		return fmt.Errorf("unknown workload %q", o.Set)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()>>32 + 1
	}
	dir := o.Keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "verify-chaos-"); err != nil {
			return err
		}
	}
	inputs.seed = o.Seed
	fmt.Printf("chaos: %v minutes, workload %s, broker fault %s, %d inputs/s, seed %d, logs under %s\n",
		o.Minutes, o.Set, o.Fault, o.Rate, o.Seed, dir)
	bo := kafkatest.Options{Dir: filepath.Join(dir, "broker"), Profile: profile}
	if o.Fault == "both" {
		bo.Properties = map[string]string{"broker.session.timeout.ms": "9000"}
	}
	broker, err := kafkatest.Start(ctx, bo)
	if err != nil {
		return err
	}
	defer broker.Stop()
	s, err := newScene(ctx, broker.Addr(), "chaos", dir, inputs)
	if err != nil {
		return err
	}
	defer s.close()
	c := &chaosRun{
		o: o, rng: newRand(o.Seed), broker: broker, s: s, start: time.Now(), faults: make(map[string]int),
		frozen: make(map[*instance]time.Time),
	}
	err = c.run(ctx)
	unexplained, logErr := c.explain()
	r := &s.report
	fmt.Printf("chaos: %d inputs, faults %v, quiet moments %d, databases compared %d, log lines unexplained %d: %s\n",
		s.load.Acked(), c.faults, c.quiet, s.stores, unexplained, s.verdict())
	if s.topics.Events() {
		fmt.Printf("event time: %s\n", s.eye.Summary())
	}
	if !r.OK() {
		fmt.Println(r.Explain())
	}
	switch {
	case err != nil || logErr != nil:
		return errors.Join(err, logErr)
	case !r.OK():
		return errors.New("chaos: not exactly once")
	case unexplained > 0:
		return errors.New("chaos: log lines that no fault explains")
	}
	if o.Keep == "" {
		return os.RemoveAll(dir)
	}
	return nil
}

func (c *chaosRun) run(ctx context.Context) error {
	for range chaosInstances {
		if err := c.add(""); err != nil {
			return err
		}
	}
	loadCtx, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	loaded := make(chan error, 1)
	go func() { loaded <- c.produce(loadCtx) }()
	end := c.start.Add(time.Duration(c.o.Minutes * float64(time.Minute)))
	nextQuiet := time.Now().Add(quietEvery)
	for time.Now().Before(end) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-loaded:
			return err
		case <-time.After(time.Duration(1000+c.rng.IntN(5000)) * time.Millisecond):
		}
		if err := c.thaw(false); err != nil {
			return err
		}
		if time.Now().After(nextQuiet) {
			if err := c.quietMoment(ctx); err != nil {
				return err
			}
			nextQuiet = time.Now().Add(quietEvery)
			continue
		}
		if err := c.fault(ctx); err != nil {
			return err
		}
	}
	stopLoad()
	if err := <-loaded; err != nil {
		return err
	}
	if err := c.thaw(true); err != nil {
		return err
	}
	if err := c.reap(); err != nil {
		return err
	}
	if len(c.s.running) == 0 {
		if err := c.add(""); err != nil {
			return err
		}
	}
	last, cancel := context.WithTimeoutCause(ctx, 2*quietLimit, errors.New("the end takes too long"))
	defer cancel()
	if err := c.s.load.Flush(last); err != nil {
		return err
	}
	return c.s.finish(last)
}

// produce sends inputs at the rate, except while it is held.
func (c *chaosRun) produce(ctx context.Context) error {
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	due := 0.0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if c.hold.Load() {
			continue
		}
		due += float64(c.o.Rate) * step.Seconds()
		n := int(due)
		due -= float64(n)
		// A broker that does not answer fills the client's buffer; then Produce waits.
		if err := c.s.load.Produce(context.WithoutCancel(ctx), n); err != nil {
			return err
		}
	}
}

// add starts an instance; without a name a new one.
func (c *chaosRun) add(name string) error {
	if name == "" {
		c.next++
		name = fmt.Sprintf("i%d", c.next)
	}
	sp := c.s.spec(name)
	sp.Session, sp.Heartbeat, sp.Revoke = 4*time.Second, 500*time.Millisecond, 3*time.Second
	_, err := c.s.start(sp)
	return err
}

// reap forgets instances that have ended; none may end by itself.
func (c *chaosRun) reap() error {
	for _, i := range append([]*instance{}, c.s.running...) {
		if !i.ended() {
			continue
		}
		c.s.gone(i)
		return fmt.Errorf("instance %s ended by itself: %v\n%s", i.spec.Name, i.err, i.tail(10))
	}
	return nil
}

// thaw lets frozen instances go on whose time has come, or all.
func (c *chaosRun) thaw(all bool) error {
	for i, until := range c.frozen {
		if all || time.Now().After(until) {
			delete(c.frozen, i)
			if err := i.signal(syscall.SIGCONT); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *chaosRun) say(what, who string) {
	c.faults[what]++
	fmt.Printf("  %6.1f s  %s %s\n", time.Since(c.start).Seconds(), what, who)
}

// pick returns a random instance that runs and is not frozen.
func (c *chaosRun) pick() *instance {
	var able []*instance
	for _, i := range c.s.running {
		if _, frozen := c.frozen[i]; !frozen {
			able = append(able, i)
		}
	}
	if len(able) == 0 {
		return nil
	}
	return able[c.rng.IntN(len(able))]
}

// fault does one random thing.
func (c *chaosRun) fault(ctx context.Context) error {
	if err := c.reap(); err != nil {
		return err
	}
	if len(c.s.running) < 2 {
		c.say("add", "")
		return c.add("")
	}
	if c.o.Fault != "none" && c.rng.IntN(8) == 0 {
		return c.brokerFault(ctx)
	}
	i := c.pick()
	if i == nil {
		return nil
	}
	switch c.rng.IntN(6) {
	case 0, 1:
		c.say("kill", i.spec.Name)
		name := i.spec.Name
		if err := i.kill(); err != nil {
			return err
		}
		c.s.gone(i)
		if err := c.s.compare(ctx, name); err != nil {
			return err
		}
		if c.rng.IntN(3) > 0 {
			return c.add(name) // on the same disk
		}
		return c.add("")
	case 2, 3:
		d := i.spec.Session/2 + time.Duration(c.rng.Int64N(int64(3*i.spec.Session)))
		c.say("freeze", fmt.Sprintf("%s for %v", i.spec.Name, d.Round(time.Millisecond)))
		c.frozen[i] = time.Now().Add(d)
		return i.signal(syscall.SIGSTOP)
	case 4:
		if len(c.s.running) > chaosInstances+1 {
			return nil
		}
		c.say("add", "")
		return c.add("")
	default:
		if len(c.s.running) <= 2 {
			return nil
		}
		c.say("remove", i.spec.Name)
		return c.s.stop(i)
	}
}

// brokerFault kills and restarts the broker, or pauses it.
func (c *chaosRun) brokerFault(ctx context.Context) error {
	kill := c.o.Fault == "kill" || c.o.Fault == "both" && c.rng.IntN(2) == 0
	if kill {
		c.say("broker kill", "")
		if err := c.broker.Kill(); err != nil {
			return err
		}
		return c.broker.Restart(ctx)
	}
	c.say("broker pause", "")
	if err := c.broker.Pause(); err != nil {
		return err
	}
	time.Sleep(brokerPause)
	return c.broker.Resume()
}

// quietMoment holds the load until nothing is in flight, and checks the sum over all accounts there, and what became of
// every id.
func (c *chaosRun) quietMoment(ctx context.Context) error {
	c.hold.Store(true)
	defer c.hold.Store(false)
	if err := c.thaw(true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, quietLimit, errors.New("no quiet moment"))
	defer cancel()
	if err := c.s.load.Flush(ctx); err != nil {
		return err
	}
	r, err := c.s.eye.Settle(ctx)
	if err != nil || !r.OK() {
		c.s.report.Add(r)
		for _, i := range c.s.running {
			err = errors.Join(err, fmt.Errorf("%s: %s", i.spec.Name, i.tail(4)))
		}
		return err
	}
	c.quiet++
	what := "all balances add up to zero"
	if c.s.topics.Events() {
		what = fmt.Sprintf("each id has passed once or was refused, %d panes so far", c.s.eye.Panes())
	}
	c.say("quiet:", fmt.Sprintf("%d inputs, %s", c.s.load.Acked(), what))
	return nil
}
