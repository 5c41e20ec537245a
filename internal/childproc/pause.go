package childproc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Pause stops the process with SIGSTOP and returns when no thread of the process runs any more. The signal alone is not enough: threads
// on other processors go on for a moment and may still answer.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for range 1000 {
		stopped, err := p.stopped()
		if stopped || err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("childproc: pause: process %d does not stop", p.Pid())
}

func (p *Process) stopped() (bool, error) {
	pid := strconv.Itoa(p.Pid())
	stats, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "stat")) // the pattern is valid
	if len(stats) == 0 {
		state, err := exec.Command("ps", "-o", "state=", "-p", pid).Output()
		if err != nil {
			return false, fmt.Errorf("childproc: pause: ps: %w", err)
		}
		return bytes.HasPrefix(state, []byte("T")), nil
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		// "pid (name) state ...": the name may hold anything.
		if i := bytes.LastIndexByte(stat, ')'); i < 0 || !bytes.HasPrefix(stat[i:], []byte(") T")) {
			return false, nil
		}
	}
	return true, nil
}
