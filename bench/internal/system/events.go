package system

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidemark/tidemark"
)

// Event is what a measured instance says of itself, one line each on its standard output:
//
//	event <unix µs> <CPU seconds so far> <kind> <fields>
//
// The kinds and their fields: phase (its name), task (id, state), restore (id, source, records, bytes, unix µs at
// which the logs were known, finished), commit (worker, records), snapshot (id, commit, bytes, of these uploaded,
// microseconds), store (what has been asked of the object store, see Stored; when the instance runs, and at its end).
type Event struct {
	At     time.Time
	CPU    float64
	Kind   string
	Fields []string
}

// ParseEvent reads a line; ok is false for other lines.
func ParseEvent(line string) (e Event, ok bool) {
	text, ok := strings.CutPrefix(line, "event ")
	f := strings.SplitN(text, " ", 4)
	if !ok || len(f) < 4 {
		return e, false
	}
	us, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return e, false
	}
	if e.CPU, err = strconv.ParseFloat(f[1], 64); err != nil {
		return e, false
	}
	e.At, e.Kind = time.UnixMicro(us), f[2]
	if e.Fields = strings.Fields(f[3]); e.Kind == "phase" {
		e.Fields = []string{f[3]}
	}
	return e, true
}

// PrintEvent writes one line.
func PrintEvent(out io.Writer, at time.Time, kind string, fields ...any) {
	text := strings.TrimSuffix(fmt.Sprintln(fields...), "\n")
	fmt.Fprintf(out, "event %d %.3f %s %s\n", at.UnixMicro(), ownCPU(), kind, text)
}

// ownCPU returns the user and system seconds of this process.
func ownCPU() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

func printEvents(out io.Writer) tidemark.Events {
	var mu sync.Mutex // events come from several goroutines
	emit := func(at time.Time, kind string, fields ...any) {
		mu.Lock()
		defer mu.Unlock()
		PrintEvent(out, at, kind, fields...)
	}
	return tidemark.Events{
		Phase: func(p tidemark.PhaseInfo) { emit(p.At, "phase", p.Phase) },
		Task:  func(t tidemark.TaskInfo) { emit(t.At, "task", t.Task, t.State) },
		Restore: func(r tidemark.RestoreInfo) {
			at := r.At
			if r.Finished {
				at = at.Add(r.Took)
			}
			emit(at, "restore", r.Task, r.Source, r.Records, r.Bytes, r.Seen.UnixMicro(), r.Finished)
		},
		Snapshot: func(s tidemark.SnapshotInfo) {
			if s.Err == nil {
				emit(time.Now(), "snapshot", s.Task, s.Seq, s.Bytes, s.Uploaded, s.Took.Microseconds())
			}
		},
		Commit: func(c tidemark.CommitInfo) { emit(time.Now(), "commit", c.Worker, c.Records) },
	}
}
