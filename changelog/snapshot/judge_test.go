package snapshot

import (
	"strings"
	"testing"
	"time"
)

func judged() (*Manifest, Facts) {
	m := &Manifest{
		App: "app", Sub: "sub", Partition: 1, Seq: 100, Time: 1_000_000, Format: 16, Fingerprint: "f1",
		Stores:   []Store{{"count", "key-value", "string", "int64"}, {"panes", "window", "string", "json"}},
		Ends:     []End{{"count", 500}, {"panes", 700}},
		TopicIDs: map[string][16]byte{"count-changelog": {1}, "panes-changelog": {2}},
	}
	return m, Facts{
		Task: Task{"app", "sub", 1}, Seq: 120, Now: 1_000_000 + 60_000, Retention: 7 * 24 * time.Hour, Markers: 1, Format: 16,
		Stores:   []Store{{"count", "key-value", "string", "int64"}, {"panes", "window", "string", "json"}},
		TopicIDs: map[string][16]byte{"count-changelog": {1}, "panes-changelog": {2}},
		Logs: []Log{
			{Store: "count", Start: 10, HighWatermark: 900, LastStable: 900},
			{Store: "panes", Start: 20, HighWatermark: 900, LastStable: 900, Trimmed: true},
		},
	}
}

func TestJudge(t *testing.T) {
	const halfRetention = 7 * 24 * 3_600_000 / 2
	for _, c := range []struct {
		name   string
		change func(m *Manifest, f *Facts)
		reason string // part of it; "" admits
	}{
		{"as it is", func(*Manifest, *Facts) {}, ""},

		{"other app", func(m *Manifest, _ *Facts) { m.App = "app-g2" }, "of the task app-g2/sub/1"},
		{"other sub-topology", func(_ *Manifest, f *Facts) { f.Task.Sub = "x" }, "of the task app/sub/1"},
		{"other partition", func(m *Manifest, _ *Facts) { m.Partition = 2 }, "of the task app/sub/2"},
		{"any fingerprint", func(m *Manifest, _ *Facts) { m.Fingerprint = "f2" }, ""},
		{"other fingerprint", func(_ *Manifest, f *Facts) { f.Fingerprint = "f2" }, "of the topology f1, this is f2"},
		{"same fingerprint", func(_ *Manifest, f *Facts) { f.Fingerprint = "f1" }, ""},

		{"newer format", func(m *Manifest, _ *Facts) { m.Format = 17 }, "format 17, this build opens up to 16"},
		{"older format", func(m *Manifest, _ *Facts) { m.Format = 13 }, ""},

		{"other kind", func(_ *Manifest, f *Facts) { f.Stores[0].Kind = "versioned" }, "store count is key-value"},
		{"other key schema", func(_ *Manifest, f *Facts) { f.Stores[1].KeySchema = "int64" }, "store panes is window"},
		{"other value schema", func(m *Manifest, _ *Facts) { m.Stores[0].ValueSchema = "int32" }, "store count is"},
		{"a value schema that can be read too", func(m *Manifest, f *Facts) {
			m.Stores[0].ValueSchema = "int32"
			f.Stores = append(f.Stores, Store{"count", "key-value", "string", "int32"})
		}, ""},
		{"a value schema that can be read too, with another key", func(m *Manifest, f *Facts) {
			m.Stores[0].KeySchema = "int32"
			f.Stores = append(f.Stores, Store{"count", "key-value", "string", "int32"})
		}, "store count is"},
		{"a store removed", func(_ *Manifest, f *Facts) { f.Stores, f.Logs = f.Stores[:1], f.Logs[:1] }, ""},
		{"a store new", func(m *Manifest, _ *Facts) { m.Stores, m.Ends = m.Stores[:1], m.Ends[:1] }, ""},
		{"a store in another order", func(_ *Manifest, f *Facts) { f.Stores[0], f.Stores[1] = f.Stores[1], f.Stores[0] }, ""},

		{"topic made anew", func(_ *Manifest, f *Facts) { f.TopicIDs["count-changelog"] = [16]byte{9} }, "count-changelog has been made anew"},
		{"topic not looked at", func(_ *Manifest, f *Facts) { delete(f.TopicIDs, "panes-changelog") }, ""},

		{"the last commit", func(m *Manifest, _ *Facts) { m.Seq = 120 }, ""},
		{"beyond the last commit", func(m *Manifest, _ *Facts) { m.Seq = 121 }, "of commit 121, the last one is 120"},

		{"at the start of the log", func(_ *Manifest, f *Facts) { f.Logs[0].Start = 500 }, ""},
		{"below the start of a compacted log", func(_ *Manifest, f *Facts) { f.Logs[0].Start = 501 }, "position 500 is below the start 501"},
		{"below the start of a trimmed log", func(_ *Manifest, f *Facts) { f.Logs[1].Start = 701 }, ""},
		{"at the high watermark", func(_ *Manifest, f *Facts) { f.Logs[0].HighWatermark = 500 }, ""},
		{"beyond the high watermark", func(_ *Manifest, f *Facts) { f.Logs[0].HighWatermark = 499 }, "position 500 is beyond the end 499"},
		{"beyond the end of a trimmed log", func(_ *Manifest, f *Facts) { f.Logs[1].HighWatermark = 699 }, "position 700 is beyond the end 699"},
		{"no position", func(m *Manifest, _ *Facts) { m.Ends = m.Ends[1:] }, "no position in its changelog"},

		{"just young enough", func(m *Manifest, f *Facts) { f.Now = m.Time + halfRetention }, ""},
		{"too old", func(m *Manifest, f *Facts) { f.Now = m.Time + halfRetention + 1 }, "it is 84 h old"},
		{"too old, and at the end of its logs", func(m *Manifest, f *Facts) {
			f.Now = m.Time + 100*halfRetention
			f.Logs[0].LastStable, f.Logs[1].LastStable = 501, 701
		}, ""},
		{"too old, and a commit behind", func(m *Manifest, f *Facts) {
			f.Now = m.Time + halfRetention + 1
			f.Logs[0].LastStable, f.Logs[1].LastStable = 501, 702
		}, "from the changelog of panes"},
		{"too old without markers", func(m *Manifest, f *Facts) {
			f.Now, f.Markers = m.Time+halfRetention+1, 0
			f.Logs[0].LastStable, f.Logs[1].LastStable = 500, 701
		}, "from the changelog of panes"},
		{"from a clock that is ahead", func(m *Manifest, f *Facts) { f.Now = m.Time - 1000 }, ""},
		{"a new store has any log", func(m *Manifest, f *Facts) {
			m.Stores, m.Ends = m.Stores[:1], m.Ends[:1]
			f.Logs[1] = Log{Store: "panes", Start: 5, HighWatermark: 6, LastStable: 6}
		}, ""},
	} {
		m, f := judged()
		c.change(m, &f)
		got := Judge(m, f)
		if (got == "") != (c.reason == "") || !strings.Contains(got, c.reason) {
			t.Errorf("%s: %q, want %q", c.name, got, c.reason)
		}
	}
}
