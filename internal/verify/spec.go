package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/verify/workload"
)

// spec is what a child process is told, as JSON in its argument.
type spec struct {
	Name    string // of the instance, for messages
	Broker  string
	App     string
	Prefix  string // of the topics
	Set     string // of workloads
	Dir     string // of the state
	Workers int

	// Point is where the process does Action, kill or stop, when it gets there for the Hit-th time.
	Point  string
	Hit    int
	Action string

	// EndTxn disturbs the EndTxnHit-th EndTxn request: hang holds it back for Hang; lost lets it and all that
	// follow within Hang arrive, but cuts the connection before the answer. A Point counts only after that.
	EndTxn    string
	EndTxnHit int
	Hang      time.Duration

	// Bucket is the endpoint of the S3 server that snapshots go to, every Snapshots; empty for none.
	Bucket    string
	Snapshots time.Duration
	Restore   tidemark.RestoreMode
	Grace     time.Duration

	Session, Heartbeat, Transaction, Revoke time.Duration
}

const (
	actionKill = "kill"
	actionStop = "stop"
	endHang    = "hang" // the request is held back, the connection stays
	endLost    = "lost" // the request arrives, the connection is cut before the answer
)

func (s *spec) topics() workload.Topics { return topicsOf(s.Set, s.Prefix, s.App) }

// Sets of workloads.
const (
	setBank   = "bank"       // seq, sum and bank
	setEvents = "event-time" // events
	setBoth   = "both"
)

func topicsOf(set, prefix, app string) workload.Topics {
	var t workload.Topics
	if set != setEvents {
		t = workload.Named(prefix)
	}
	if set != setBank {
		t = t.WithEvents(prefix, app)
	}
	return t
}

func (s *spec) arg() (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

func parseSpec(arg string) (*spec, error) {
	s := new(spec)
	if err := json.Unmarshal([]byte(arg), s); err != nil {
		return nil, fmt.Errorf("child: %w", err)
	}
	return s, nil
}

func (s *spec) config() tidemark.Config {
	cfg := tidemark.Config{
		App: s.App, Brokers: []string{s.Broker}, StateDir: s.Dir, Workers: s.Workers,
		CommitInterval: 100 * time.Millisecond, CacheBytes: 2 << 20,
		SessionTimeout: s.Session, HeartbeatInterval: s.Heartbeat, RevokeBudget: s.Revoke,
		TransactionTimeout: s.Transaction, PurgeInterval: 2 * time.Second,
	}
	if s.topics().Events() {
		cfg.OnError = tidemark.DeadLetter // some events cannot be decoded
	}
	return cfg
}

// disks returns where the databases of the instance are.
func (s *spec) disks() string { return filepath.Join(s.Dir, s.App) }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x7469646d)) }
