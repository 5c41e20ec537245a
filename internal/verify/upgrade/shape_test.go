package upgrade_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

// golden compares bytes with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// everything is a topology with every kind of state.
func everything(t *testing.T) declare {
	return func(top *topology.Topology) {
		s := events(top)
		k := s.KeyBy("by", self, topology.Partitions(4))
		k.Dedup("ids", self, time.Hour)
		k.Count("n")
		k.Window(window.Hopping(time.Minute, 10*time.Second)).Count("sliced")
		k.Window(window.Tumbling(time.Hour).Offset(time.Minute), window.AllowedLateness(time.Minute), window.Early(window.Every(time.Second)), window.Discarding()).Count("hours")
		k.Window(window.Week(location(t, "Europe/Berlin"), time.Monday), window.AllowedLateness(window.Forever)).Count("weeks")
		k.Window(window.Session(time.Minute)).Count("sessions")
		k.Window(window.Sliding(time.Second)).Count("sliding")
		k.Aggregate("money", topology.Fold(func(m spending, _ string) spending { return m }),
			topology.StateVersion(2), topology.Migrate(0, nil, toMoney), topology.Migrate(1, nil, sameMoney))
		s.Process("p", nothing, topology.KeyValue[string, string]("kv"), topology.KeyValue[string, string]("ttl", topology.WallTTL(time.Hour)),
			topology.Windows[string, string]("w", window.Tumbling(time.Minute), time.Hour), topology.Sessions[string, string]("s", time.Hour),
			topology.Versioned[string, string]("v", time.Hour), topology.Lists[string, string]("l"))
		top.Table[string, string]("names", "names")
	}
}

func TestShape(t *testing.T) {
	s := shape(t, everything(t)).WithTasks(map[string]int{"by": 4})
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "shape.json", b.Bytes())
	again, err := topology.ReadShape(&b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, again); d != "" {
		t.Errorf("read again (-wrote +read):\n%s", d)
	}
	if d := cmp.Diff(s, shape(t, everything(t)).WithTasks(map[string]int{"by": 4})); d != "" {
		t.Errorf("built again:\n%s", d)
	}
	if list := topology.Compare(recorded(t, s), again, topology.CompareOptions{}); len(list) > 0 {
		t.Errorf("%q", list)
	}
}

// Rules about what a build does not decide alone.
func TestCompareShapes(t *testing.T) {
	week := timed(func(s *text) { s.Window(window.Week(location(t, "Europe/Berlin"), time.Monday)).Count("n") })
	for _, tt := range []struct {
		name   string
		of     declare
		change func(s *topology.Shape) // of what was
		want   string
	}{
		{"rules of a zone", week, func(s *topology.Shape) {
			s.Operators[0].Stores[0].Window.ZoneRules, s.Operators[0].Stores[0].Form = "before", "before"
		}, topology.RuleZoneRules},
		{"partitioner", by(), func(s *topology.Shape) { s.Operators[0].Repartition.Partitioner = "crc32" }, topology.RulePartitioner},
		{"tasks", count(), func(s *topology.Shape) { *s = s.WithTasks(map[string]int{"n": 2}) }, topology.RuleTasks},
		{"tasks not known", count(), func(s *topology.Shape) { *s = s.WithTasks(nil) }, ""},
		{"what an older build recorded", count(), func(s *topology.Shape) { s.Operators[0] = old("n", "key-value", "string", "int64") }, ""},
		{"what an older build recorded, of another kind", count(), func(s *topology.Shape) { s.Operators[0] = old("n", "list", "string", "int64") }, topology.RuleStoreKind},
		{"what an older build recorded, with another key", count(), func(s *topology.Shape) { s.Operators[0] = old("n", "key-value", "int64", "int64") }, topology.RuleKey},
		{"what an older build recorded, with another value", count(), func(s *topology.Shape) { s.Operators[0] = old("n", "key-value", "string", "string") }, topology.RuleValue},
		{"what an older build recorded, migrated", money(topology.StateVersion(1), topology.Migrate(0, nil, toMoney)), func(s *topology.Shape) { s.Operators[0] = old("n", "key-value", "string", "int64") }, ""},
		{"windows of an older build", windows(window.Tumbling(time.Minute)), func(s *topology.Shape) {
			s.Operators[0] = old("n", "window", "string", "int64 in tumbling 1m0s; accumulating")
		}, ""},
		{"other windows of an older build", windows(window.Tumbling(time.Minute)), func(s *topology.Shape) {
			s.Operators[0] = old("n", "window", "string", "int64 in tumbling 1h0m0s; accumulating")
		}, topology.RuleValue},
		{"gone since", count(), func(s *topology.Shape) {
			o := old("m", "key-value", "string", "int64")
			o.Kind, o.Retired = "count", true
			s.Operators = append(s.Operators, o)
		}, ""},
		{"back in another form", count(), func(s *topology.Shape) { s.Operators[0].Retired, s.Operators[0].Stores[0].Key = true, "int64" }, topology.RuleKey},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := shape(t, tt.of).WithTasks(map[string]int{"n": 4})
			was := recorded(t, now)
			tt.change(&was)
			list := topology.Compare(was, now, topology.CompareOptions{})
			if tt.want == "" && len(list) > 0 || tt.want != "" && (len(list) != 1 || list[0].Rule != tt.want) {
				t.Errorf("got %+v, want %q", list, tt.want)
			}
		})
	}
}

// old is a store as a build without shapes has recorded it.
func old(id, kind, key, value string) topology.OperatorShape {
	return topology.OperatorShape{ID: id, Stores: []topology.StoreShape{{ID: id, Kind: kind, Key: key, Value: value}}, Retired: true}
}

// U-SHIFTED-ID: an operator in front shifts ids that are counted. The state never lands on the other operator: the ids
// that moved are named, and where to.
func TestUShiftedID(t *testing.T) {
	counted := func(topics ...string) declare {
		return func(top *topology.Topology) {
			for i, topic := range topics {
				top.Stream[string, string](topic).Count("count-" + string(rune('1'+i)))
			}
		}
	}
	list := topology.Compare(shape(t, counted("a", "b")), shape(t, counted("new", "a", "b")), topology.CompareOptions{})
	if len(list) != 2 || list[0].Rule != topology.RuleMoved || list[1].Rule != topology.RuleMoved {
		t.Fatalf("%q", list)
	}
	for i, to := range []string{"count-2", "count-3"} {
		if !strings.Contains(list[i].Remedy, to) {
			t.Errorf("%q does not name %s", list[i], to)
		}
	}
	// With ids of their own they stay what they are, filters in front or not.
	chosen := func(top *topology.Topology) {
		top.Stream[string, string]("a").Filter(func(string) bool { return true }).Count("count-1")
		top.Stream[string, string]("b").Count("count-2")
		top.Stream[string, string]("new").Count("count-of-new")
	}
	if list := topology.Compare(shape(t, counted("a", "b")), shape(t, chosen), topology.CompareOptions{}); len(list) > 0 {
		t.Errorf("%q", list)
	}
	// A renamed one is told which id it had.
	renamed := func(top *topology.Topology) { in(top).Count("m") }
	if list := topology.Compare(shape(t, count()), shape(t, renamed), topology.CompareOptions{}); len(list) != 1 || !strings.Contains(list[0].Remedy, "give m,") {
		t.Errorf("%q", list)
	}
}

// U-FORMAT: a shape in a newer form is refused with both versions named, damage is told from it.
func TestUFormatShape(t *testing.T) {
	b, err := shape(t, count()).Operators[0].Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "operator.shape", b)
	newer := bytes.Clone(b[:len(b)-4])
	newer[0] = topology.ShapeVersion + 1
	newer = binary.BigEndian.AppendUint32(newer, crc32.Checksum(newer, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := topology.DecodeOperatorShape(newer); !newerShape(err) {
		t.Errorf("newer: %v", err)
	}
	damaged := bytes.Clone(b)
	damaged[7] ^= 1
	for _, bad := range [][]byte{nil, b[:3], b[:len(b)-1], damaged} {
		if _, err := topology.DecodeOperatorShape(bad); !errors.Is(err, topology.ErrShape) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := topology.ReadShape(strings.NewReader(`{"version":2}`)); !newerShape(err) {
		t.Errorf("newer JSON: %v", err)
	}
	for _, bad := range []string{"", "{}", `{"version":1,"operators":7}`} {
		if _, err := topology.ReadShape(strings.NewReader(bad)); !errors.Is(err, topology.ErrShape) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func newerShape(err error) bool {
	ve, ok := errors.AsType[*topology.ShapeVersionError](err)
	return ok && ve.Have == 2 && ve.Want == 1 && strings.Contains(err.Error(), "2") && strings.Contains(err.Error(), "1")
}

func TestDifferenceTable(t *testing.T) {
	var b strings.Builder
	list := topology.Compare(shape(t, count()), shape(t, windows(window.Tumbling(time.Minute))), topology.CompareOptions{App: "clicks"})
	if err := topology.WriteDifferences(&b, list); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", []byte(b.String()))
	golden(t, "line.txt", []byte(list[0].String()+"\n"))
}
