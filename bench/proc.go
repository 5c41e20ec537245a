package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticks is the unit of times in /proc: 100 a second on every Linux that Go runs on.
const ticks = 100

// cpuOf returns the user and system seconds a process has used, 0 for pid 0.
func cpuOf(pid int) float64 {
	if pid == 0 {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The command, in parentheses, may hold spaces.
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	return (number(f[11]) + number(f[12])) / ticks
}

// cpuTotal returns the seconds all processors together were busy.
func cpuTotal() float64 {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait irq softirq …
	if len(f) < 8 {
		return 0
	}
	return (number(f[1]) + number(f[2]) + number(f[3]) + number(f[6]) + number(f[7])) / ticks
}

// peakRSS returns the largest resident set of a process so far, in MB.
func peakRSS(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return number(strings.Fields(v)[0]) / 1024
		}
	}
	return 0
}

func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return x
}

// forgetPeak makes peakRSS begin again.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
