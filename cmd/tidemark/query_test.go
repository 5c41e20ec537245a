package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands print into the files of testdata")

// words divides a line as a shell does, with single quotes only.
func words(line string) (out []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// The files of testdata are commands, each behind a dollar, with what a canned server was asked, what was printed, and the
// error. HOST stands for the address of the server.
func TestQueries(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	server, host := serveCanned(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(string(want)) {
				command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ tidemark ")
				if !ok {
					continue
				}
				got.WriteString("$ tidemark " + command + "\n")
				got.WriteString(strings.ReplaceAll(shown(server, words(strings.ReplaceAll(command, "HOST", host))), host, "HOST"))
				got.WriteString("\n")
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

func shown(server *canned, args []string) string {
	var out, warnings bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&warnings)
	err := cmd.ExecuteContext(context.Background())
	text := server.take() + out.String() + warnings.String()
	if err != nil {
		text += "tidemark: " + err.Error() + "\n"
	}
	return text
}

// Nobody answers: the error says what was tried, and what to look at.
func TestUnreachable(t *testing.T) {
	_, err := run("stores", "-e", "127.0.0.1:1", "--timeout", "50ms")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no answer from 127.0.0.1:1", "refused", "--endpoint", "--timeout"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// A command that is interrupted ends without an error.
func TestWatchInterrupted(t *testing.T) {
	_, host := serveCanned(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := root()
	cmd.SetArgs([]string{"watch", "totals", "quiet", "-e", host})
	cmd.SetOut(writerFunc(func(b []byte) (int, error) {
		cancel()
		return len(b), nil
	}))
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
