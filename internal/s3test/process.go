package s3test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a running or ended child process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// launch starts a program with its output appended to the log file.
func launch(name string, args []string, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("s3test: launch: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("s3test: launch: %w", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the exit status is in ProcessState
	}()
	return p, nil
}

// signal sends a signal; a process that has ended is no error.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("s3test: signal %v to %d: %w", s, p.cmd.Process.Pid, err)
	}
	return nil
}

func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *process) stop(patience time.Duration) error {
	// The order matters: a stopped process handles the pending SIGTERM when it is continued.
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		return p.kill()
	}
}
