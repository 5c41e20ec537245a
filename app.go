package tidemark

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// App is one instance of an application: one member of its consumer group. It is made by New and runs once.
type App struct {
	engine *engine.Engine
	config Config
	stores *stores

	mu     sync.Mutex
	cancel context.CancelFunc // of a running Run
	closed bool
	done   chan struct{} // closed when Run has returned
}

// New checks a topology and a configuration. It does not connect. All errors of both are reported at once.
func New(t *topology.Topology, cfg Config) (*App, error) {
	plan, err := t.Build()
	if err != nil {
		return nil, errors.Join(err, cfg.check())
	}
	cfg.setDefaults(plan.Name)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := newStores(&cfg)
	e, err := engine.New(plan, cfg.engine(s))
	if err != nil {
		return nil, err
	}
	return &App{engine: e, config: cfg, stores: s, done: make(chan struct{})}, nil
}

// Run joins the group and processes until ctx ends, Close is called or something fails that only a person can
// mend; then it commits what is processed, closes the stores, leaves the group (unless membership is static)
// and returns. It returns nil after ctx or Close, a *RecordError when a record cannot be processed and the
// policy is Fail, and an error that wraps one of the Err… values otherwise. It may be called once.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.mu.Lock()
	if a.closed || a.cancel != nil {
		a.mu.Unlock()
		return fmt.Errorf("tidemark: run: %w", ErrClosed)
	}
	a.cancel = cancel
	a.mu.Unlock()
	defer close(a.done)
	err := a.engine.Run(ctx)
	return errors.Join(err, a.stores.close())
}

// Close ends Run and waits for it. An App that has not run cannot run any more.
func (a *App) Close() {
	a.mu.Lock()
	a.closed = true
	cancel := a.cancel
	a.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-a.done
}

// Ready is closed when every task of the first assignment runs, or when the instance has learned that there is
// none for it. An instance that waits because another topology is in force is not ready.
func (a *App) Ready() <-chan struct{} { return a.engine.Ready() }

// Processed returns the number of input records this instance has processed since it started, records of
// repartition topics included.
func (a *App) Processed() int64 { return a.engine.Processed() }

// Watermarks returns how far the event time of every operator that has one has got, for the tasks that run in this
// instance, and what holds it: the partition, or the task of this app further up. An operator is there once per task. It
// is at most half a second old. Empty before Run, after it, and for a topology without event time.
func (a *App) Watermarks() []Watermark { return a.engine.Watermarks() }
