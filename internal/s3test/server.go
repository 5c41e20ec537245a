package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/childproc"
)

// The credentials of every server.
const (
	AccessKey = "tidemark"
	SecretKey = "tidemark-secret"
	Region    = "us-east-1"
)

const (
	// startTimeout bounds Start and Restart.
	startTimeout = 30 * time.Second
	// stopTimeout is how long Stop waits before it kills.
	stopTimeout = 10 * time.Second
	// tries is how often a free port is looked for: another process may take it first.
	tries = 3
)

// Options says how the server is started.
type Options struct {
	// Dir holds the server's data and log. Required. A directory that holds data already is used as it is.
	Dir string
	// Port on 127.0.0.1. Default 0: a free one.
	Port int
}

// Server is one server on loopback.
type Server struct {
	opts    Options
	binary  string
	sidecar bool // metadata in files of its own: the file system has no extended attributes

	mu   sync.Mutex
	port int
	proc *childproc.Process
}

// Start starts a server and returns when it answers. The server must have been installed.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("s3test: start: no directory given")
	}
	binary, err := path()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("s3test: start: %w; install it with go run ./tools/s3 install", err)
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("s3test: start: %w", err)
	}
	s := &Server{opts: o, binary: binary, port: o.Port}
	for _, dir := range []string{s.DataDir(), s.metaDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("s3test: start: %w", err)
		}
	}
	for range tries {
		if o.Port == 0 {
			if s.port, err = freePort(); err != nil {
				return nil, err
			}
		}
		for _, s.sidecar = range []bool{false, true} {
			if err = s.Restart(ctx); err == nil {
				return s, nil
			}
		}
	}
	return nil, err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("s3test: free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Restart starts the server again on the same data and port, after Kill, Stop or a crash, and waits as Start does. A server
// that runs is stopped first.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stopLocked(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	args := []string{"--quiet", "--health", "/health", "--port", s.addr(), "--access", AccessKey, "--secret", SecretKey, "--region", Region, "posix"}
	if s.sidecar {
		args = append(args, "--sidecar", s.metaDir())
	}
	proc, err := childproc.Start(s.binary, append(args, s.DataDir()), s.file("log"), false)
	if err != nil {
		return err
	}
	if err := s.ready(ctx, proc); err != nil {
		return errors.Join(fmt.Errorf("s3test: start: %w\n%s", err, s.Log()), proc.Kill())
	}
	s.proc = proc
	return nil
}

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context, p *childproc.Process) error {
	for {
		err := s.probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the server ended: %v", p.State())
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Server) probe(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint()+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}

func (s *Server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Endpoint returns the URL of the server.
func (s *Server) Endpoint() string { return "http://" + s.addr() }

// DataDir returns the directory of the buckets. An object is a file below its bucket whose path is its key, for tests that count
// or damage bytes.
func (s *Server) DataDir() string { return s.file("data") }

func (s *Server) metaDir() string { return s.file("meta") }

func (s *Server) file(name string) string { return filepath.Join(s.opts.Dir, name) }

// CreateBucket makes a bucket. One that exists is no error.
func (s *Server) CreateBucket(name string) error {
	if err := os.MkdirAll(filepath.Join(s.DataDir(), name), 0o755); err != nil {
		return fmt.Errorf("s3test: create bucket: %w", err)
	}
	return nil
}

// Log returns what the server has printed.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.file("log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Kill ends the server with SIGKILL and waits for its end. The data stays.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.Kill()
}

// Pause stops the server's process: connections stay open and nothing answers.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.Pause()
}

// Resume ends a Pause.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.Resume()
}

// Stop shuts the server down, paused or not, and kills it when that takes longer than 10 s. The data stays. A server that does
// not run is no error.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopLocked()
}

func (s *Server) stopLocked() error {
	if s.proc == nil {
		return nil
	}
	return s.proc.Stop(stopTimeout)
}
