package kafkatest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

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
