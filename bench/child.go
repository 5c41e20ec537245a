package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/tidemark/tidemark/bench/internal/system"
)

// child is a process under measurement: this program with other arguments.
type child struct {
	cmd      *exec.Cmd
	progress chan int64        // closed when the child has closed its output
	events   chan system.Event // as progress; nil if nobody asked for them
	stored   []system.Stored   // what it has asked of the object store; complete when progress is closed
}

// launch says how a child is started besides its arguments.
type launch struct {
	env    []string // in addition to our own
	prefix []string // command that becomes the child
	events bool
}

func start(ctx context.Context, args []string, l *launch) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if l == nil {
		l = &launch{}
	}
	argv := append(append([]string{}, l.prefix...), append([]string{self}, args...)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), l.env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, progress: make(chan int64, 1024)}
	if l.events {
		c.events = make(chan system.Event, 1024)
	}
	go c.read(out)
	return c, nil
}

// read runs until the child has closed its output. Lines that nobody takes are dropped.
func (c *child) read(out io.Reader) {
	defer close(c.progress)
	if c.events != nil {
		defer close(c.events)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if e, ok := system.ParseEvent(lines.Text()); ok {
			if s, ok := system.ParseStored(e); ok {
				c.stored = append(c.stored, s)
			}
			if c.events != nil {
				select {
				case c.events <- e:
				default:
				}
			}
		}
		if text, ok := strings.CutPrefix(lines.Text(), "progress "); ok {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				select {
				case c.progress <- n:
				default:
				}
			}
		}
	}
	_, _ = io.Copy(io.Discard, out)
}

// reach waits until the child has processed n records.
func (c *child) reach(n int64) error {
	for x := range c.progress {
		if x >= n {
			return nil
		}
	}
	return errors.Join(errors.New("it ended before its input"), c.cmd.Wait())
}

// stop ends the child and waits for it.
func (c *child) stop(sig syscall.Signal) error {
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for range c.progress {
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if sig == syscall.SIGKILL && errors.As(err, &exit) {
		return nil
	}
	return err
}
