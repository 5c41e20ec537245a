package kafkatest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running or ended child process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// launch starts a program with its output appended to the log file.
func launch(name string, args []string, log string, detach bool) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: launch: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if detach {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("kafkatest: launch: %w", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the exit status is in ProcessState
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("kafkatest: signal %v to %d: %w", s, p.pid(), err)
	}
	return nil
}

func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-p.done
	}
	return err
}

func (p *process) stop(patience time.Duration) error {
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
		return p.kill()
	}
}

// running returns the pid in the directory's pid file if it is that of a live broker on it.
func running(dir string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0, false
	}
	// The number may be another program's by now.
	command, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		command, err = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	}
	return pid, err == nil && bytes.Contains(command, []byte(filepath.Join(dir, "server.properties")))
}

// StopDir stops the broker that another process started on the directory, and reports whether there
// was one.
func StopDir(dir string) (bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false, fmt.Errorf("kafkatest: stop: %w", err)
	}
	pid, ok := running(dir)
	if !ok {
		return false, nil
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			return true, fmt.Errorf("kafkatest: stop pid %d: %w", pid, err)
		}
	}
	for range int(stopTimeout / (50 * time.Millisecond)) {
		if _, ok := running(dir); !ok {
			return true, os.Remove(filepath.Join(dir, "pid"))
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return true, fmt.Errorf("kafkatest: kill pid %d: %w", pid, err)
	}
	return true, os.Remove(filepath.Join(dir, "pid"))
}
