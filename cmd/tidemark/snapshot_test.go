package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/s3"
	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/s3test"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// at is a clock that stands.
type at struct {
	clock.Clock
	now time.Time
}

func (a at) Now() time.Time { return a.now }

// sums are masked: they are those of files of Pebble.
var sums = regexp.MustCompile(`[0-9a-f]{64}`)

// snapshotShown runs a command two minutes after noon and returns what it prints, in the order of streams.
func snapshotShown(args []string) string {
	var out, warnings bytes.Buffer
	cmd := rootAt(at{clock.Real(), time.UnixMilli(noon + 120_000)})
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&warnings)
	err := cmd.ExecuteContext(context.Background())
	text := warnings.String() + out.String()
	switch {
	case errors.Is(err, errFlawed):
		text += "(exit status 1)\n"
	case err != nil:
		text += "tidemark: " + err.Error() + "\n"
	}
	text = strings.ReplaceAll(text, "s3: get ", "objects: get ") // which store it was
	return sums.ReplaceAllString(text, "SUM")
}

// goldenSnapshots runs the commands of the files of testdata/snapshot, each on a store filled anew, which open returns with
// the flags that name it. WHERE stands for those. Lines that begin with a percent sign damage the store.
func goldenSnapshots(t *testing.T, rewritten bool, open func(t *testing.T) (objects.Store, string), names ...string) {
	for _, name := range names {
		file := filepath.Join("testdata", "snapshot", name+".txt")
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, where := open(t)
			stock(t, s)
			var got strings.Builder
			for line := range strings.Lines(string(want)) {
				line = strings.TrimSuffix(line, "\n")
				if do, ok := strings.CutPrefix(line, "% "); ok {
					damage(t, s, do)
					got.WriteString(line + "\n\n")
				}
				command, ok := strings.CutPrefix(line, "$ tidemark ")
				if !ok {
					continue
				}
				got.WriteString(line + "\n")
				text := snapshotShown(words(strings.ReplaceAll(command, "WHERE", where)))
				for w := range strings.FieldsSeq(where) {
					if strings.HasPrefix(w, string(filepath.Separator)) {
						text = strings.ReplaceAll(text, w, "DIR")
					}
				}
				got.WriteString(text + "\n")
			}
			if rewritten {
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

func dirStore(t *testing.T) (objects.Store, string) {
	root := t.TempDir()
	return must(objects.NewDir(root))(t), "--dir " + root
}

// The files of testdata/snapshot, on a directory.
func TestSnapshotCommands(t *testing.T) {
	goldenSnapshots(t, *rewrite, dirStore, "list", "verify", "dump", "errors")
}

// The same on a bucket of a real server, for what does not name the store.
func TestSnapshotCommandsOnServer(t *testing.T) {
	server := s3test.New(t, s3test.Options{})
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "none", "AWS_SHARED_CREDENTIALS_FILE": "none", "AWS_PROFILE": "",
		"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": s3test.SecretKey,
	} {
		t.Setenv(name, value)
	}
	flags := " --endpoint " + server.Endpoint() + " --region " + s3test.Region + " --path-style"
	goldenSnapshots(t, false, func(t *testing.T) (objects.Store, string) {
		bucket := "shop-" + strings.ToLower(filepath.Base(t.Name()))
		if err := server.CreateBucket(bucket); err != nil {
			t.Fatal(err)
		}
		s, err := s3.New(t.Context(), s3.Options{Bucket: bucket, Prefix: "state/prod", Endpoint: server.Endpoint(), PathStyle: true})
		return must[objects.Store](s, err)(t), "--s3 " + bucket + "/state/prod" + flags
	}, "list", "verify", "dump")

	for _, c := range []struct {
		args, env []string
		want      []string
	}{
		{[]string{"--s3", "none"}, nil, []string{"NoSuchBucket", "look at --s3 and --endpoint"}},
		{[]string{"--s3", "shop-list"}, nil, []string{"bucket shop-list holds no snapshots of app shop", "--app", "prefix"}},
		{[]string{"--s3", "shop-list/state/prod"}, []string{"AWS_SECRET_ACCESS_KEY", "wrong"}, []string{"AWS_SECRET_ACCESS_KEY"}},
	} {
		if c.env != nil {
			t.Setenv(c.env[0], c.env[1])
		}
		_, err := run(append(append([]string{"snapshot", "list", "--app", "shop"}, c.args...), strings.Fields(flags)...)...)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %q", c.args, err, want)
			}
		}
	}
}

// What a running app publishes is listed, whole, and has its rows, windows included.
func TestSnapshotsOfAnApp(t *testing.T) {
	b := must(embedded.Start(embedded.Options{Topics: map[string]int{"in": 1}}))(t)
	defer b.Close()
	cl := must(kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.DefaultProduceTopic("in")))(t)
	defer cl.Close()
	top := topology.New("shop")
	in := top.Stream[string, string]("in")
	in.Count("totals")
	in.Window(window.Tumbling(time.Minute), window.Retracting()).Count("per-minute")
	root := t.TempDir()
	made := make(chan tidemark.SnapshotInfo, 1000)
	app := must(tidemark.New(top, tidemark.Config{
		Brokers: b.Addrs(), CommitInterval: 10 * time.Millisecond, StateDir: t.TempDir(),
		Snapshots: tidemark.Snapshots{Store: must(objects.NewDir(root))(t), Interval: 20 * time.Millisecond},
		Events:    tidemark.Events{Snapshot: func(i tidemark.SnapshotInfo) { made <- i }},
	}))(t)
	var ended error
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended = app.Run(context.Background())
	}()
	defer func() {
		app.Close()
		<-done
		if ended != nil {
			t.Error(ended)
		}
	}()
	want := []string{
		`"store":"totals","number":256,"kind":"key-value","key":"eu","value":300,`,
		`"store":"per-minute","number":257,"kind":"window","key":"eu","end":1772366460000,"value":300,`,
	}
	task, n := "", 0
	for all := false; !all; {
		if n < 300 {
			for range 30 {
				n++
				cl.Produce(t.Context(), &kgo.Record{Key: []byte("eu"), Value: []byte("x"), Timestamp: time.UnixMilli(noon + int64(n))}, nil)
			}
			if err := cl.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case i := <-made:
			if i.Err != nil {
				t.Fatal(i.Err)
			}
			task = i.Task.String()
		case <-done:
			t.FailNow()
		}
		out, err := run("snapshot", "dump", "--dir", root, "--app", "shop", "--task", task)
		if err != nil {
			t.Fatal(err)
		}
		all = true
		for _, row := range want {
			all = all && strings.Contains(out, row)
		}
	}
	if out, err := run("snapshot", "verify", "--dir", root, "--app", "shop"); err != nil || !strings.Contains(out, " of 1 task: ") {
		t.Errorf("%s%v", out, err)
	}
	if out, err := run("snapshot", "list", "--dir", root, "--app", "shop"); err != nil || !strings.Contains(out, task) {
		t.Errorf("%s%v", out, err)
	}
}
