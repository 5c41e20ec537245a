package window

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out into the files of testdata")

// TestHistories runs the histories in testdata. A line is an event, the lines below it that begin with two spaces are
// what it brings out:
//
//	window KIND N… OPTION=VALUE…   begin anew with one key; all numbers are milliseconds
//	add VALUE TIME                 a record
//	passed TIME                    the watermark: no record before TIME is expected any more
//	clock TIME                     wall clock time; deadlines fire
//	crash                          forget what is not stored
//	rows                           the stored windows
func TestHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			have := runHistory(t, string(b))
			if *rewrite {
				if err := os.WriteFile(file, []byte(have), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want := strings.Split(string(b), "\n")
			for i, line := range strings.Split(have, "\n") {
				if i >= len(want) || line != want[i] {
					t.Fatalf("%s:%d: have %q\n%s", file, i+1, line, have)
				}
			}
		})
	}
}

func runHistory(t *testing.T, text string) string {
	var b strings.Builder
	var o *operator
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		b.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if f[0] == "window" {
			c := parseConfig(t, f[1:])
			o = newOperator(t, &c)
			continue
		}
		var n []int64
		for _, s := range f[1:] {
			n = append(n, parseInt(t, s))
		}
		switch f[0] {
		case "add":
			o.add(n[0], n[1])
		case "passed":
			o.advance(n[0] - 1)
		case "clock":
			o.clock(n[0])
		case "crash":
			o.crash()
		case "rows":
			for _, r := range o.sorted() {
				o.out = append(o.out, fmt.Sprintf("%v=%d state %x", r, o.rows[r].value, o.rows[r].state))
			}
		default:
			t.Fatalf("line %q", line)
		}
		for _, s := range o.out {
			b.WriteString("  " + s + "\n")
		}
		o.out = nil
	}
	return b.String()
}

func parseInt(t *testing.T, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func parseConfig(t *testing.T, f []string) Config {
	var nums []time.Duration
	var opts []Option
	for _, s := range f[1:] {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			nums = append(nums, dur(parseInt(t, s)))
			continue
		}
		switch key {
		case "lateness":
			opts = append(opts, AllowedLateness(dur(parseInt(t, value))))
		case "early":
			opts = append(opts, Early(parseTrigger(t, value)))
		case "late":
			opts = append(opts, Late(parseTrigger(t, value)))
		case "ontime":
			opts = append(opts, OnTime(map[string]When{"ifnew": IfNew, "always": Always, "never": Never}[value]))
		case "onclose":
			opts = append(opts, OnClose(map[string]When{"ifnew": IfNew, "always": Always, "never": Never}[value]))
		case "emit":
			opts = append(opts, EmitAlways())
		case "mode":
			opts = append(opts, map[string]Option{"accumulating": Accumulating(), "discarding": Discarding(), "retracting": Retracting()}[value])
		default:
			t.Fatalf("option %q", s)
		}
	}
	var w Window
	switch f[0] {
	case "tumbling":
		w = Tumbling(nums[0])
	case "hopping":
		w = Hopping(nums[0], nums[1])
	case "cumulate":
		w = Cumulate(nums[0], nums[1])
	case "session":
		w = Session(nums[0])
	case "global":
		w = Global()
	default:
		t.Fatalf("window %q", f[0])
	}
	c, err := New(w, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parseTrigger(t *testing.T, s string) Trigger {
	name, n, _ := strings.Cut(s, ":")
	switch name {
	case "none":
		return None()
	case "each":
		return EachElement()
	case "count":
		return AfterCount(int(parseInt(t, n)))
	case "every":
		return Every(dur(parseInt(t, n)))
	case "aligned":
		return EveryAligned(dur(parseInt(t, n)))
	}
	t.Fatalf("trigger %q", s)
	return Trigger{}
}
