package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/serve"
	"github.com/tidemark/tidemark/watermark"
)

// instance is one running App and what its events have told.
type instance struct {
	name   string
	app    *tidemark.App
	at     net.Listener // where it answers queries; nil: nowhere
	server *serve.Server

	mu       sync.Mutex
	phase    string
	tasks    map[string]tidemark.TaskState
	commits  int64
	records  int64
	took     time.Duration // of the last commit
	restored int64
	copies   int64   // snapshots made
	told     []shown // restores, not taken yet
}

// setup is what instances have in common.
type setup struct {
	options
	addrs  []string
	bucket objects.Store // for snapshots; nil: none are made
	logger *zap.Logger
}

func newInstance(name string, s setup, at net.Listener) (*instance, error) {
	i := &instance{name: name, at: at, tasks: make(map[string]tidemark.TaskState)}
	var err error
	i.app, err = tidemark.New(campaignMetrics(s.early), tidemark.Config{
		Brokers:   s.addrs,
		StateDir:  s.stateDir(name),
		Workers:   2,
		Logger:    s.logger,
		Endpoint:  i.endpoint(),
		Snapshots: tidemark.Snapshots{Store: s.bucket, Interval: s.snapshotEvery},
		Events: tidemark.Events{
			Phase: func(p tidemark.PhaseInfo) { i.set(func() { i.phase = p.Phase }) },
			Task: func(t tidemark.TaskInfo) {
				i.set(func() {
					if t.State == tidemark.TaskClosed {
						delete(i.tasks, t.Task.String())
						return
					}
					i.tasks[t.Task.String()] = t.State
				})
			},
			Restore: func(r tidemark.RestoreInfo) {
				if r.Finished {
					i.set(func() { i.noteRestore(r) })
				}
			},
			Snapshot: func(s tidemark.SnapshotInfo) {
				if s.Err == nil {
					i.set(func() { i.copies++ })
				}
			},
			Commit: func(c tidemark.CommitInfo) {
				i.set(func() { i.commits, i.records, i.took = i.commits+1, i.records+int64(c.Records), c.Took })
			},
		},
	})
	if err == nil && at != nil {
		i.server, err = serve.New(i.app, serve.Config{Logger: s.logger})
	}
	return i, err
}

// sources are where a restore begins.
var sources = map[string]string{
	"local": "its local state", "changelog": "the changelogs", "snapshot": "a snapshot", "lazy snapshot": "a snapshot it fetches while it runs",
}

// noteRestore takes down what a task was restored from. There is nothing to say of one that has never run.
func (i *instance) noteRestore(r tidemark.RestoreInfo) {
	i.restored += r.Records
	if r.Source == "changelog" && r.Total == 0 {
		return
	}
	took := r.At.Add(r.Took).Sub(r.Seen) // with the fetch
	text := fmt.Sprintf("instance %s: task %s restored from %s", i.name, r.Task, sources[r.Source])
	if r.Source != "changelog" {
		text += " and the changelogs since"
	}
	text += fmt.Sprintf(", %d records, in %s", r.Records, took.Round(100*time.Microsecond))
	i.told = append(i.told, shown{text, "restored"})
}

// take returns what was told since it was called last.
func (i *instance) take() []shown {
	i.mu.Lock()
	defer i.mu.Unlock()
	told := i.told
	i.told = nil
	return told
}

// listen opens the port that is so many behind an address. An empty address is none.
func listen(addr string, behind int) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("-serve %s: %w", addr, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("-serve %s: the port is no number", addr)
	}
	if n > 0 {
		n += behind
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n)))
	if err != nil {
		return nil, fmt.Errorf("%w; choose another port with -serve, or none with -serve ''", err)
	}
	return l, nil
}

// endpoint is where the instance answers queries, empty if it does not.
func (i *instance) endpoint() string {
	if i.at == nil {
		return ""
	}
	return i.at.Addr().String()
}

// answer answers queries until ctx ends.
func (i *instance) answer(ctx context.Context) error { return i.server.Serve(ctx, i.at) }

func (i *instance) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

func (i *instance) run(ctx context.Context) error {
	if err := i.app.Run(ctx); err != nil {
		return fmt.Errorf("instance %s: %w", i.name, err)
	}
	return nil
}

// eventTime returns how far the minutes have got, over the tasks of all instances: the zero Time if that is not known.
func eventTime(apps []*instance) (at time.Time) {
	for _, a := range apps {
		for _, w := range a.app.Watermarks() {
			if w.Operator != "campaign-minutes" {
				continue
			}
			if w.W == watermark.Unknown {
				return time.Time{}
			}
			if t := time.UnixMilli(w.W); at.IsZero() || t.Before(at) {
				at = t
			}
		}
	}
	return at
}

// line describes the instance in one line.
func (i *instance) line() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	running := 0
	for _, s := range i.tasks {
		if s == tidemark.TaskRunning {
			running++
		}
	}
	parts := []string{
		fmt.Sprintf("instance %s: %s", i.name, i.phase),
		fmt.Sprintf("%d of %d tasks running", running, len(i.tasks)),
		fmt.Sprintf("%d commits", i.commits),
		fmt.Sprintf("%d records", i.records),
		fmt.Sprintf("last commit %s", i.took.Round(100*time.Microsecond)),
	}
	if i.restored > 0 {
		parts = append(parts, fmt.Sprintf("%d rows restored", i.restored))
	}
	if i.copies > 0 {
		parts = append(parts, fmt.Sprintf("%d snapshots made", i.copies))
	}
	return strings.Join(parts, ", ")
}
