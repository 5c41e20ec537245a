package tidemarktest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// history is one text file: header lines, then steps. Lines that begin with # are comments. A step that prints is
// followed by its expected text, every line of which is indented.
type history struct {
	file     string
	lines    []string // of the file
	topology string
	finals   bool  // same: finals; else all
	counts   []int // of partitions it runs with
	confined bool  // to one count, for the reason given
	utc      bool  // times are printed as instants
	dead     bool  // records that cannot be processed go to the dead letters
	start    time.Time
	steps    []step
}

// step is one line of a history.
type step struct {
	line   int // index into lines
	verb   string
	args   []string
	want   []string // expected text, without indentation
	to     int      // index of the line behind the expected text
	prints bool
}

// readHistory parses a file.
func readHistory(file string) (*history, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tidemarktest: %w", err)
	}
	h, err := parseHistory(string(b))
	if err != nil {
		return nil, fmt.Errorf("tidemarktest: %s: %w", file, err)
	}
	h.file = file
	return h, nil
}

func parseHistory(text string) (*history, error) {
	h := &history{lines: strings.Split(strings.TrimRight(text, "\n"), "\n"), counts: []int{1, 4}, start: time.Unix(0, 0)}
	same := ""
	for i := 0; i < len(h.lines); i++ {
		line := h.lines[i]
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			return nil, fmt.Errorf("line %d: text that no step prints", i+1)
		}
		if name, value, ok := strings.Cut(line, ": "); ok && !strings.Contains(name, " ") {
			if err := h.header(name, strings.TrimSpace(value), &same); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			continue
		}
		f := strings.Fields(line)
		s := step{line: i, verb: f[0], args: f[1:], to: i + 1}
		n, known := verbs[s.verb]
		if !known || len(s.args) < n.least || len(s.args) > n.most {
			return nil, fmt.Errorf("line %d: no step %q", i+1, line)
		}
		if s.prints = n.prints; s.prints {
			for s.to < len(h.lines) && strings.HasPrefix(h.lines[s.to], " ") {
				s.want = append(s.want, strings.TrimSpace(h.lines[s.to]))
				s.to++
			}
			i = s.to - 1
		}
		h.steps = append(h.steps, s)
	}
	switch {
	case h.topology == "":
		return nil, fmt.Errorf("no topology")
	case same != "all" && same != "finals":
		return nil, fmt.Errorf("same: %q is neither all nor finals", same)
	}
	h.finals = same == "finals"
	return h, nil
}

// verbs are the steps there are, with their numbers of arguments.
var verbs = map[string]struct {
	least, most int
	prints      bool
}{
	"emit": {4, 12, false}, "advance": {1, 1, false}, "idle": {2, 2, false}, "commit": {0, 0, false},
	"crash": {0, 1, false}, "rebalance": {0, 0, false}, "restore": {1, 1, false},
	"output": {0, 0, true}, "store": {1, 1, true}, "watermarks": {0, 0, true},
}

func (h *history) header(name, value string, same *string) error {
	switch name {
	case "topology":
		h.topology = value
	case "same":
		*same = value
	case "partitions":
		n, reason, ok := strings.Cut(value, " only because ")
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 || !ok || reason == "" {
			return fmt.Errorf("partitions: want \"N only because REASON\", not %q", value)
		}
		h.counts, h.confined = []int{count}, true
	case "times":
		if value != "utc" && value != "ms" {
			return fmt.Errorf("times: %q is neither ms nor utc", value)
		}
		h.utc = value == "utc"
	case "errors":
		if value != "dead-letter" && value != "fail" {
			return fmt.Errorf("errors: %q is neither fail nor dead-letter", value)
		}
		h.dead = value == "dead-letter"
	case "start":
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		h.start = at
	default:
		return fmt.Errorf("no header %q", name)
	}
	return nil
}

// rewrite writes the file with other expected texts, one per printing step.
func (h *history) rewrite(blocks [][]string) error {
	var out []string
	at, n := 0, 0
	for _, s := range h.steps {
		out = append(out, h.lines[at:s.line+1]...)
		at = s.line + 1
		if s.prints {
			for _, l := range blocks[n] {
				out = append(out, "  "+l)
			}
			n++
			at = s.to
		}
	}
	out = append(out, h.lines[at:]...)
	if err := os.WriteFile(h.file, []byte(strings.Join(out, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("tidemarktest: %w", err)
	}
	return nil
}

// emission is what an emit step sends.
type emission struct {
	topic      string
	partition  int // -1 by key, -2 to all
	key, value string
	at         int64
	headers    []string // name=value
}

// emission parses the arguments of an emit step: TOPIC [PARTITION] KEY VALUE @TIME [NAME=VALUE...].
func (s *step) emission() (e emission, err error) {
	at := -1
	for i, a := range s.args {
		if a[0] == '@' && (i == 3 || i == 4) {
			at = i
			break
		}
	}
	if at < 0 {
		return e, fmt.Errorf("emit: want TOPIC [PARTITION] KEY VALUE @TIME")
	}
	e.topic, e.partition = s.args[0], -1
	if at == 4 {
		if e.partition = -2; s.args[1] != "*" {
			if e.partition, err = strconv.Atoi(s.args[1]); err != nil || e.partition < 0 {
				return e, fmt.Errorf("emit: partition %q is neither a number nor *", s.args[1])
			}
		}
	}
	e.key, e.value, e.headers = s.args[at-2], s.args[at-1], s.args[at+1:]
	e.at, err = parseTime(s.args[at][1:])
	return e, err
}

// parseTime reads ms since the epoch, a duration since it, an instant, or none.
func parseTime(s string) (int64, error) {
	if s == "none" {
		return -1, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return d.Milliseconds(), nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UnixMilli(), nil
	}
	return 0, fmt.Errorf("time %q is neither ms, a duration, an instant, nor none", s)
}
