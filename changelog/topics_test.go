package changelog

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func have(w Want) Have {
	return Have{Topic: w.Topic, ID: [16]byte{1}, Partitions: w.Partitions, Configs: maps.Clone(w.Configs)}
}

func TestWants(t *testing.T) {
	cases := []struct {
		w    Want
		want map[string]string
	}{
		{WantRepartition("r", 4), map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}},
		{WantChangelog("c", 4), map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "604800000", "segment.bytes": "67108864"}},
		{WantWindowChangelog("w", 4), map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1", "delete.retention.ms": "604800000"}},
		{WantDedupChangelog("d", 4), map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}},
		{WantProgress("p", 4), map[string]string{"cleanup.policy": "compact", "segment.bytes": "4194304"}},
		{WantControl("x"), map[string]string{"cleanup.policy": "compact"}},
		{WantDeadLetter("d", 2), map[string]string{"cleanup.policy": "delete", "retention.ms": "604800000"}},
		{WantLate("l", 2), map[string]string{"retention.ms": "604800000"}},
	}
	for _, c := range cases {
		for k, v := range c.want {
			if c.w.Configs[k] != v {
				t.Errorf("%s: %s=%s, want %s", c.w.Topic, k, c.w.Configs[k], v)
			}
		}
		// One refused timestamp refuses a whole batch, so every class accepts them all.
		if c.w.Configs["message.timestamp.after.max.ms"] != maxInt64 {
			t.Errorf("%s refuses timestamps ahead of the clock", c.w.Topic)
		}
		if missing, bad := Verify([]Want{c.w}, []Have{have(c.w)}); len(missing)+len(bad) > 0 {
			t.Errorf("%s as wanted: missing %v, bad %v", c.w.Topic, missing, bad)
		}
		if missing, bad := Verify([]Want{c.w}, nil); len(missing) != 1 || len(bad) > 0 {
			t.Errorf("%s absent: missing %v, bad %v", c.w.Topic, missing, bad)
		}
	}
}

func TestVerifyMismatches(t *testing.T) {
	change := func(w Want, f func(*Have)) Have {
		h := have(w)
		f(&h)
		return h
	}
	known := WantChangelog("c", 4)
	known.ID = [16]byte{1}
	cases := []struct {
		name   string
		w      Want
		h      []Have
		field  string
		repair string
	}{
		{"R-COUNT-MISMATCH", WantChangelog("c", 8), []Have{change(WantChangelog("c", 8), func(h *Have) { h.Partitions = 4 })},
			"partitions", "go back to 4 partitions upstream, or tidemark reset"},
		{"dead letters may grow", WantDeadLetter("d", 8), []Have{change(WantDeadLetter("d", 8), func(h *Have) { h.Partitions = 4 })},
			"partitions", "kafka-topics.sh --bootstrap-server <brokers> --alter --topic d --partitions 8"},
		{"cleanup policy", WantRepartition("r", 1), []Have{change(WantRepartition("r", 1), func(h *Have) { h.Configs["cleanup.policy"] = "compact" })},
			"cleanup.policy", "kafka-configs.sh --bootstrap-server <brokers> --alter --entity-type topics --entity-name r --add-config cleanup.policy=delete"},
		{"retention", WantRepartition("r", 1), []Have{change(WantRepartition("r", 1), func(h *Have) { delete(h.Configs, "retention.ms") })},
			"retention.ms", "--add-config retention.ms=-1"},
		{"replaced", known, []Have{change(known, func(h *Have) { h.ID = [16]byte{2} })}, "topic id", "tidemark reset"},
		{"gone", known, nil, "topic", "tidemark reset"},
		{"source absent", WantSource("in", 0), nil, "topic", "--create --topic in"},
		{"source grown", WantSource("in", 4), []Have{{Topic: "in", Partitions: 5}}, "partitions", "go back to 5"},
	}
	for _, c := range cases {
		missing, bad := Verify([]Want{c.w}, c.h)
		if len(missing) != 0 || len(bad) != 1 || bad[0].Field != c.field || !strings.Contains(bad[0].Repair, c.repair) {
			t.Errorf("%s: missing %v, bad %v", c.name, missing, bad)
		}
	}
	// What the user may change is not verified, nor the order of a list.
	dl := change(WantDeadLetter("d", 1), func(h *Have) { h.Configs["retention.ms"] = "5" })
	if _, bad := Verify([]Want{WantDeadLetter("d", 1)}, []Have{dl}); len(bad) > 0 {
		t.Error(bad)
	}
	if !sameConfig("compact, delete", "delete,compact") || sameConfig("compact", "compact,delete") {
		t.Error("lists are compared wrongly")
	}
}

func TestVerifyIsSortedAndReportsAll(t *testing.T) {
	want := []Want{WantChangelog("z", 1), WantChangelog("a", 1), WantChangelog("m", 2)}
	missing, bad := Verify(want, []Have{{Topic: "m", Partitions: 1, Configs: map[string]string{}}})
	var got []string
	for _, m := range missing {
		got = append(got, m.Topic)
	}
	for _, b := range bad {
		got = append(got, b.Field)
	}
	if d := cmp.Diff([]string{"a", "z", "partitions", "cleanup.policy", "message.timestamp.type"}, got); d != "" {
		t.Error(d)
	}
}
