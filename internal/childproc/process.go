package childproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a running or ended child process.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// Start starts a program with its output appended to the log file. A detached one outlives this process.
func Start(name string, args []string, log string, detach bool) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("childproc: start: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if detach {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("childproc: start: %w", err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the exit status is in ProcessState
	}()
	return p, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State says how the process has ended. It is for after Done.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Resume ends a Pause.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("childproc: signal %v to %d: %w", s, p.Pid(), err)
	}
	return nil
}

// Kill ends the process with SIGKILL and waits for its end. One that has ended is no error.
func (p *Process) Kill() error {
	err := p.signal(syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-p.done
	}
	return err
}

// Stop ends the process with SIGTERM, paused or not, and kills it when that takes longer than patience.
func (p *Process) Stop(patience time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	// The order matters: a stopped process handles the pending SIGTERM when it is continued.
	err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT))
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		return p.Kill()
	}
}
