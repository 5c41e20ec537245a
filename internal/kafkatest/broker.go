package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/childproc"
)

// startTimeout bounds Start and Restart beyond the download. A killed broker waits for the end of
// its old session.
const startTimeout = 90 * time.Second

// stopTimeout is how long Stop waits before it kills.
const stopTimeout = 20 * time.Second

// Broker is one broker on loopback.
type Broker struct {
	opts Options
	java string
	lib  string // directory of the jars
	port int
	ctrl int // port of the controller

	mu   sync.Mutex
	proc *childproc.Process // nil before the first start
}

// Start starts a broker and returns when it answers, a producer with a transactional id has been
// initialised and a group coordinator is elected. It fetches the jars first if they are not cached.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Dir == "" {
		return nil, errors.New("kafkatest: start: no directory given")
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("kafkatest: start: %w", err)
	}
	if pid, ok := running(o.Dir); ok {
		return nil, fmt.Errorf("kafkatest: start: a broker is already running on %s, pid %d", o.Dir, pid)
	}
	b := &Broker{opts: o}
	if b.java, err = findJava(ctx); err != nil {
		return nil, err
	}
	if b.lib, err = Fetch(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("kafkatest: start: %w", err)
	}
	if b.port, b.ctrl, err = choosePorts(o); err != nil {
		return nil, err
	}
	if err := b.format(ctx); err != nil {
		return nil, err
	}
	if err := b.Restart(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Restart starts the broker again on the same data and port, after Kill, Stop or a crash, and waits
// as Start does. A broker that runs is stopped first.
func (b *Broker) Restart(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.stopLocked(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	args := append(b.opts.jvm(), b.common()...)
	args = append(args, "kafka.Kafka", b.path("server.properties"))
	proc, err := childproc.Start(b.java, args, b.path("broker.log"), b.opts.Detach)
	if err != nil {
		return err
	}
	b.proc = proc
	if err := os.WriteFile(b.path("pid"), []byte(strconv.Itoa(proc.Pid())), 0o644); err != nil {
		return errors.Join(fmt.Errorf("kafkatest: start: %w", err), proc.Kill())
	}
	if err := b.ready(ctx, proc); err != nil {
		return errors.Join(fmt.Errorf("kafkatest: start: %w\n%s", err, b.LogTail(30)), proc.Kill())
	}
	return nil
}

// Addr returns the address for kgo.SeedBrokers.
func (b *Broker) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// Pid returns the process id of the newest start.
func (b *Broker) Pid() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proc.Pid()
}

// Kill ends the broker with SIGKILL and waits for its end. The data stays.
func (b *Broker) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer os.Remove(b.path("pid"))
	return b.proc.Kill()
}

// Pause stops the broker's process with SIGSTOP and returns when it stands still: its connections
// stay open and nothing answers.
func (b *Broker) Pause() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proc.Pause()
}

// Resume ends a Pause.
func (b *Broker) Resume() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proc.Resume()
}

// Stop shuts the broker down, paused or not, and kills it when that takes longer than 20 s. The data
// stays. A broker that does not run is no error.
func (b *Broker) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopLocked()
}

func (b *Broker) stopLocked() error {
	if b.proc == nil {
		return nil
	}
	defer os.Remove(b.path("pid"))
	return b.proc.Stop(stopTimeout)
}

// DataDir returns the directory of the topic partitions, for tests that count or damage bytes.
func (b *Broker) DataDir() string { return b.path("log") }

func (b *Broker) path(name string) string { return filepath.Join(b.opts.Dir, name) }

// common returns the arguments of every Java program of the broker.
func (b *Broker) common() []string {
	return []string{
		"-Djava.awt.headless=true", "-Dlog4j2.configurationFile=" + b.path("log4j2.properties"),
		"-Dkafka.logs.dir=" + b.opts.Dir, "-cp", filepath.Join(b.lib, "*"),
	}
}
