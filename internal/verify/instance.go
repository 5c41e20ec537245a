package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// instance is a child process. Its log is a file beside its state.
type instance struct {
	spec *spec
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has ended
	err  error         // of the process, after done
}

// launch starts a child.
func launch(s spec, logs string) (*instance, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := s.arg()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(logs, s.App+"-"+s.Name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i := &instance{spec: &s, cmd: exec.Command(self, "child", arg), log: f.Name(), done: make(chan struct{})}
	i.cmd.Stderr, i.cmd.Stdout = f, f
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	i.cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "GOMEMLIMIT=400MiB")
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		i.err = i.cmd.Wait()
		close(i.done)
	}()
	return i, nil
}

func (i *instance) signal(s syscall.Signal) error {
	if i.ended() {
		return nil
	}
	return i.cmd.Process.Signal(s)
}

func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// kill ends the process at once, whatever state it is in.
func (i *instance) kill() error {
	err := i.signal(syscall.SIGKILL)
	<-i.done
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return err
}

// stop asks the process to commit and leave, and waits. A process that does not end in time is killed.
func (i *instance) stop(limit time.Duration) error {
	if err := i.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-i.done:
	case <-time.After(limit):
		_ = i.signal(syscall.SIGABRT) // leaves its stacks in the log
		time.Sleep(time.Second)
		return errors.Join(fmt.Errorf("%s does not stop within %v, see %s", i.spec.Name, limit, i.log), i.kill())
	}
	if i.err != nil {
		return fmt.Errorf("%s ended with %w\n%s", i.spec.Name, i.err, i.tail(8))
	}
	return nil
}

// code is the exit code, -1 for a signal.
func (i *instance) code() int { return i.cmd.ProcessState.ExitCode() }

// killed says whether the process was ended by SIGKILL.
func (i *instance) killed() bool {
	ws, ok := i.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// await polls cond until it holds. It fails when the process ends or ctx does.
func (i *instance) await(ctx context.Context, what string, cond func() (bool, error)) error {
	for {
		ok, err := cond()
		if ok || err != nil {
			return err
		}
		select {
		case <-i.done:
			if ok, err := cond(); ok || err != nil {
				return err
			}
			return fmt.Errorf("%s ended (%v) while waiting for: %s\n%s", i.spec.Name, i.err, what, i.tail(8))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w while waiting for: %s\n%s", i.spec.Name, ctx.Err(), what, i.tail(8))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitLog waits for a message.
func (i *instance) awaitLog(ctx context.Context, message string) error {
	return i.await(ctx, "log "+message, func() (bool, error) { return i.logged(message) })
}

func (i *instance) logged(message string) (bool, error) {
	b, err := os.ReadFile(i.log)
	return bytes.Contains(b, []byte(`"msg":"`+message)), err
}

// count returns how often a message was logged.
func (i *instance) count(message string) (int, error) {
	b, err := os.ReadFile(i.log)
	return bytes.Count(b, []byte(`"msg":"`+message)), err
}

// standsStill says whether the process is stopped by SIGSTOP.
func (i *instance) standsStill() bool {
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(i.cmd.Process.Pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(b, []byte(") "))
	return len(rest) > 0 && rest[0] == 'T'
}

// entry is one line of a log.
type entry struct {
	Level string `json:"level"`
	Msg   string `json:"msg"`
	Error string `json:"error"`
	line  string
}

// entries returns the log. A line that is no log entry, such as a panic, has the level "raw".
func (i *instance) entries() ([]entry, error) {
	f, err := os.Open(i.log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []entry
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		e := entry{}
		if err := json.Unmarshal(sc.Bytes(), &e, json.RejectUnknownMembers(false)); err != nil || e.Level == "" {
			e = entry{Level: "raw", Msg: sc.Text()}
		}
		e.line = sc.Text()
		out = append(out, e)
	}
	return out, sc.Err()
}

func (i *instance) tail(n int) string {
	b, err := os.ReadFile(i.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
