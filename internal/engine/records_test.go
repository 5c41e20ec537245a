package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

const deadLetters = "app-dead-letter"

func deadLetter(c *engine.Config) { c.OnError = engine.DeadLetter }

// header returns a dead letter's header of a name.
func (r rec) header(name string) string {
	for _, h := range r.headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// origin returns where a dead letter comes from and why it is there.
func (r rec) origin() string {
	return fmt.Sprintf("%s/%s@%s %s", r.header("tm-dead-topic"), r.header("tm-dead-partition"), r.header("tm-dead-offset"), r.header("tm-dead-stage"))
}

// values returns the values of records, sorted as they were read.
func values(recs []rec) (out []string) {
	for _, r := range recs {
		out = append(out, string(r.value))
	}
	return out
}

// P-POISON: undecodable records before and behind a good one go to the dead-letter topic, and the group's
// offset moves past them.
func TestPPoison(t *testing.T) {
	t.Parallel()
	type ad struct{ N int }
	top := func() *topology.Topology {
		top := topology.New("app")
		top.Stream[string, ad]("in").Map(func(a ad) string { return fmt.Sprint(a.N) }).To("out")
		return top
	}
	input := []string{"{", `{"N":7}`, "[", "}", "\xff"}
	var recs []rec
	for _, v := range input {
		recs = append(recs, rec{topic: "in", key: []byte("k"), value: []byte(v)})
	}
	t.Run("dead letter", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
			s.send(recs...)
			n := s.start("a", top(), nil, deadLetter)
			s.await("offset 5", func() bool { return s.committed("in")[0].Offset == 5 })
			if got := values(s.read("out")); len(got) != 1 || got[0] != "7" {
				t.Errorf("out holds %q", got)
			}
			got := s.read(deadLetters)
			if len(got) != 4 {
				t.Fatalf("%d dead letters", len(got))
			}
			for i, r := range got {
				at := []int{0, 2, 3, 4}[i]
				if r.origin() != fmt.Sprintf("in/0@%d decode-value", at) || string(r.value) != input[at] || string(r.key) != "k" ||
					r.header("tm-dead-error") == "" || r.header("tm-dead-operator") == "" {
					t.Errorf("dead letter %q %q: %v", r.origin(), r.value, r.headers)
				}
			}
			if got := n.metric("dead_letters_total"); got != 4 {
				t.Errorf("dead_letters_total is %v", got)
			}
		})
	})
	t.Run("fail", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
			s.send(recs[1:]...)
			n := s.start("a", top(), nil, nil)
			<-n.done
			n.judged = true
			var re *engine.RecordError
			if !errors.As(n.err, &re) || re.Topic != "in" || re.Partition != 0 || re.Offset != 1 || re.Stage != "decode-value" {
				t.Fatalf("ended: %v", n.err)
			}
			if got := s.committed("in")[0].Offset; got != 1 {
				t.Errorf("committed to %d, the good prefix ends at 1", got)
			}
			if got := values(s.read("out")); len(got) != 1 {
				t.Errorf("out holds %q", got)
			}
		})
	})
}

// choosy is a codec that refuses to encode "bad".
type choosy struct{}

func (choosy) Append(dst []byte, v string) ([]byte, error) {
	if v == "bad" {
		return nil, errors.New("choosy: bad")
	}
	return append(dst, v...), nil
}
func (choosy) Decode(b []byte) (string, error)    { return string(b), nil }
func (choosy) JSON(dst, b []byte) ([]byte, error) { return append(dst, b...), nil }
func (choosy) Schema() string                     { return "choosy" }

// P-SINK-ENCODE: the second of three outputs cannot be encoded. The dead letter is part of the transaction:
// none is seen twice although the first attempt dies before its end.
func TestPSinkEncode(t *testing.T) {
	t.Parallel()
	top := func() *topology.Topology {
		top := topology.New("app")
		top.Stream[string, string]("in").Map(strings.ToLower).To("out", topology.ValueCodec[string](choosy{}))
		return top
	}
	in := func(s *scene) {
		for _, v := range []string{"one", "BAD", "three"} {
			s.send(rec{topic: "in", key: []byte("key-" + v), value: []byte(v)})
		}
	}
	t.Run("dead letter", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
			in(s)
			n := s.prepare("a", top(), nil, deadLetter)
			n.dieAt(engine.K5, 1)
			n.run()
			<-n.done
			if got := s.read(deadLetters); len(got) != 0 {
				t.Errorf("dead letter of a transaction that never ended: %v", got)
			}
			s.start("a", top(), n.remains(), deadLetter)
			s.await("offset 3", func() bool { return s.committed("in")[0].Offset == 3 })
			if got := values(s.read("out")); fmt.Sprint(got) != "[one three]" {
				t.Errorf("out holds %q", got)
			}
			got := s.read(deadLetters)
			if len(got) != 1 || got[0].origin() != "in/0@1 encode" || string(got[0].value) != "BAD" || got[0].header("tm-dead-operator") != "sink(out)" {
				t.Errorf("dead letters %v", got)
			}
			if s.produced(deadLetters) < 2 {
				t.Error("the first attempt left no dead letter to be aborted: the test shows nothing")
			}
		})
	})
	t.Run("aborted once", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
			in(s)
			fault := s.broker.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: "in", Err: kerr.OffsetMetadataTooLarge, Count: 1})
			n := s.start("a", top(), nil, deadLetter)
			s.await("offset 3", func() bool { return s.committed("in")[0].Offset == 3 })
			if fault.Hits() != 1 || s.produced(deadLetters) < 2 {
				t.Error("the dead letter was never aborted: the test shows nothing")
			}
			if e, d := n.metric("record_errors_total", "stage", "encode"), n.metric("dead_letters_total"); e != 1 || d != 1 {
				t.Errorf("record_errors_total is %v, dead_letters_total %v", e, d)
			}
		})
	})
	t.Run("fail", func(t *testing.T) {
		simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
			in(s)
			n := s.start("a", top(), nil, nil)
			<-n.done
			n.judged = true
			var re *engine.RecordError
			if !errors.As(n.err, &re) || re.Operator != "sink(out)" || re.Stage != "encode" || string(re.Key) != "key-BAD" || re.Offset != 1 {
				t.Fatalf("ended: %v %+v", n.err, re)
			}
		})
	})
}

// P-HEADERS: headers pass a repartition topic in order, duplicates and nulls included.
func TestPHeaders(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		top := topology.New("app")
		seen := topology.KeyValue[string, int64]("seen")
		top.Stream[string, string]("in").
			TryMap(func(c *topology.Context, _, v string) (string, error) { return v + "!", nil }).
			KeyBy("by-value", func(v string) string { return v }).
			Process("pass", func(out topology.Emitter[string, string], r topology.Record[string, string]) error {
				r.AddHeader("c", []byte("3"))
				out.Emit(r.Key, r.Value)
				return nil
			}, seen).
			To("out")
		s.send(rec{topic: "in", key: []byte("k"), value: []byte("v"), headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "b"}}})
		s.start("a", top, nil, nil)
		s.await("a record in out", func() bool { return len(s.read("out")) == 1 })
		r := s.read("out")[0]
		var got []string
		for _, h := range r.headers {
			v := string(h.Value)
			if h.Value == nil {
				v = "null"
			}
			got = append(got, h.Key+"="+v)
		}
		if fmt.Sprint(got) != "[a=1 a=2 b=null c=3]" || string(r.value) != "v!" {
			t.Errorf("headers %v of %q", got, r.value)
		}
	})
}

// F13: a panic of user code, before and behind its state writes, is that record's error; its neighbours and
// the state are as if it had not been there.
func TestF13Panic(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 2, "out": 2}}, func(t *testing.T, s *scene) {
		top := topology.New("app")
		sums := topology.KeyValue[string, int64]("sums")
		top.Stream[string, string]("in").
			Process("sum", func(out topology.Emitter[string, int64], r topology.Record[string, string]) error {
				if r.Value == "13" {
					panic("before")
				}
				n, _, err := sums.Get(out, r.Key)
				if err != nil {
					return err
				}
				if err := sums.Put(out, r.Key, n+1); err != nil {
					return err
				}
				out.Emit(r.Key, n+1)
				if r.Value == "27" {
					panic("behind")
				}
				return nil
			}, sums).
			To("out")
		s.feed("in", 0, 40, 2)
		n := s.start("a", top, nil, deadLetter)
		s.caughtUp("in")
		out, dead := s.read("out"), s.read(deadLetters)
		if len(out) != 38 || len(dead) != 2 {
			t.Errorf("%d in out and %d dead letters of 40", len(out), len(dead))
		}
		last := make(map[string]byte)
		for _, r := range out {
			if r.value[7] != last[string(r.key)]+1 {
				t.Errorf("sum %d of %s follows %d", r.value[7], r.key, last[string(r.key)])
			}
			last[string(r.key)] = r.value[7]
		}
		for i, r := range dead {
			if want := []string{"13", "27"}[i]; string(r.value) != want || r.header("tm-dead-stage") != "user" || r.header("tm-dead-operator") != "sum" ||
				!strings.Contains(r.header("tm-dead-error"), []string{"before", "behind"}[i]) {
				t.Errorf("dead letter %q %v", r.value, r.headers)
			}
		}
		// A record that is met again after an abort counts once.
		if got := n.metric("record_errors_total", "stage", "user"); got != 2 {
			t.Errorf("record_errors_total is %v", got)
		}
		if got := n.metric("dead_letters_total"); got != 2 {
			t.Errorf("dead_letters_total is %v", got)
		}
	})
}

// F13 with policy fail: the error carries the stack of the panic.
func TestF13PanicFails(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		top := topology.New("app")
		top.Stream[string, string]("in").Map(func(v string) string {
			if v == "5" {
				var m map[string]int
				//lint:ignore SA5000 the panic is the point
				m[v]++
			}
			return v
		}).To("out")
		s.feed("in", 0, 10, 1)
		n := s.start("a", top, nil, nil)
		<-n.done
		n.judged = true
		var re *engine.RecordError
		if !errors.As(n.err, &re) || re.Offset != 5 || re.Stage != "user" || !bytes.Contains(re.Stack, []byte("records_test.go")) {
			t.Fatalf("ended: %v", n.err)
		}
		if got := n.metric("record_errors_total", "stage", "user"); got != 1 {
			t.Errorf("record_errors_total is %v", got)
		}
		s.copies("out", 5)
	})
}

// F14: an output larger than its topic takes is refused before it is produced: no transaction is lost by it.
func TestF14OversizedOutput(t *testing.T) {
	t.Parallel()
	for _, policy := range []engine.Policy{engine.DeadLetter, engine.Fail} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1}}, func(t *testing.T, s *scene) {
				s.mustCreate("out", 1, map[string]string{"max.message.bytes": "2000"})
				big := strings.Repeat("x", 5000)
				for _, v := range []string{"a", "b", big, "c"} {
					s.send(rec{topic: "in", key: []byte("k"), value: []byte(v)})
				}
				n := s.start("a", copying(), nil, func(c *engine.Config) { c.OnError = policy })
				if policy == engine.Fail {
					<-n.done
					n.judged = true
					var re *engine.RecordError
					if !errors.As(n.err, &re) || re.Offset != 2 || re.Stage != "oversize" || !strings.Contains(re.Error(), "max.message.bytes is 2000") {
						t.Fatalf("ended: %v", n.err)
					}
				} else {
					s.await("offset 4", func() bool { return s.committed("in")[0].Offset == 4 })
					if dead := s.read(deadLetters); len(dead) != 1 || string(dead[0].value) != big || dead[0].origin() != "in/0@2 oversize" {
						t.Errorf("%d dead letters", len(dead))
					}
				}
				want := map[engine.Policy]string{engine.DeadLetter: "[a b c]", engine.Fail: "[a b]"}[policy]
				if got := fmt.Sprint(values(s.read("out"))); got != want {
					t.Errorf("out holds %s, want %s", got, want)
				}
				if got := n.metric("transactions_total", "outcome", "aborted"); got != 0 {
					t.Errorf("%v transactions aborted", got)
				}
			})
		})
	}
}

// appending is an app whose rows grow with every record of their key.
func appending() *topology.Topology {
	top := topology.New("app")
	top.Stream[string, string]("in").Reduce("rows", func(a, b string) string { return a + b }).To("out")
	return top
}

// F14 for a changelog row: the record that makes the row too large is found and goes to its policy, everything
// around it is kept.
func TestF14OversizedChangelogRow(t *testing.T) {
	t.Parallel()
	for _, policy := range []engine.Policy{engine.DeadLetter, engine.Fail} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
				s.mustCreate("app-rows-changelog", 1, map[string]string{"cleanup.policy": "compact", "max.message.bytes": "2000"})
				var recs []rec
				for i := range 20 {
					recs = append(recs, rec{topic: "in", key: fmt.Append(nil, "k", i%4), value: bytes.Repeat([]byte{'a' + byte(i)}, 10)})
				}
				recs[9].value = bytes.Repeat([]byte("!"), 3000)
				s.send(recs...)
				n := s.start("a", appending(), nil, func(c *engine.Config) { c.OnError = policy })
				if policy == engine.Fail {
					<-n.done
					n.judged = true
					var re *engine.RecordError
					if !errors.As(n.err, &re) || re.Offset != 9 || !strings.Contains(re.Error(), "max.message.bytes 2000") {
						t.Fatalf("ended: %v", n.err)
					}
					if got := s.committed("in")[0].Offset; got != 9 {
						t.Errorf("committed to %d, the good prefix ends at 9", got)
					}
					return
				}
				s.await("offset 20", func() bool { return s.committed("in")[0].Offset == 20 })
				if dead := s.read(deadLetters); len(dead) != 1 || dead[0].origin() != "in/0@9 commit" {
					t.Errorf("dead letters %v", dead)
				}
				last := make(map[string]string)
				for _, r := range s.read("app-rows-changelog") {
					last[string(r.key)] = string(r.value)
				}
				for k := range 4 {
					want := ""
					for i := k; i < 20; i += 4 {
						if i != 9 {
							want += strings.Repeat(string(rune('a'+i)), 10)
						}
					}
					if got := last[fmt.Sprint("k", k)]; got != want {
						t.Errorf("row k%d is %q, want %q", k, got, want)
					}
				}
			})
		})
	}
}

// F14 for the dead letter itself: what the dead-letter topic does not take ends Run, it is neither lost nor
// tried for ever.
func TestF14OversizedDeadLetter(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1, "out": 1}}, func(t *testing.T, s *scene) {
		s.mustCreate(deadLetters, 1, map[string]string{"max.message.bytes": "2000"})
		top := topology.New("app")
		top.Stream[string, string]("in").Map(func(v string) string {
			if len(v) > 1 {
				panic("large")
			}
			return v
		}).To("out")
		for _, v := range []string{"a", "b", strings.Repeat("x", 5000), "c"} {
			s.send(rec{topic: "in", key: []byte("k"), value: []byte(v)})
		}
		n := s.start("a", top, nil, deadLetter)
		s.await("the end", n.ended)
		n.judged = true
		var re *engine.RecordError
		if !errors.As(n.err, &re) || re.Offset != 2 || !strings.Contains(re.Error(), "large") || !strings.Contains(re.Error(), deadLetters) {
			t.Fatalf("ended: %v", n.err)
		}
		if got := fmt.Sprint(values(s.read("out"))); got != "[a b]" {
			t.Errorf("out holds %s", got)
		}
	})
}

// A record that its topic takes passes, however large, and small ones are not batched beyond a small limit.
func TestF14LargestOutput(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1}}, func(t *testing.T, s *scene) {
		s.mustCreate("out", 1, map[string]string{"max.message.bytes": "1048588"})
		s.mustCreate("small", 1, map[string]string{"max.message.bytes": "2000"})
		top := topology.New("app")
		in := top.Stream[string, string]("in")
		in.To("out")
		in.Filter(func(v string) bool { return len(v) < 100 }).To("small")
		s.feed("in", 0, 500, 1)
		s.send(rec{topic: "in", value: bytes.Repeat([]byte("x"), 900_000)})
		n := s.start("a", top, nil, nil)
		s.await("offset 501", func() bool { n.mustLive(); return s.committed("in")[0].Offset == 501 })
		s.copies("small", 500)
		if got := n.metric("transactions_total", "outcome", "aborted"); got != 0 {
			t.Errorf("%v transactions aborted", got)
		}
	})
}

// F15: an empty key is a key, a null key where one is needed goes to its policy, a key larger than the
// changelog takes too, and a tombstone deletes.
func TestF15Keys(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"out": 1, "rows": 1, "copy": 1}}, func(t *testing.T, s *scene) {
		s.mustCreate("in", 1, map[string]string{"max.message.bytes": "4000000"})
		s.mustCreate(deadLetters, 1, map[string]string{"max.message.bytes": "4000000"})
		top := topology.New("app")
		top.Stream[[]byte, []byte]("in").Count("counts").To("out")
		top.Table[string, string]("rows", "table").To("copy")
		huge := bytes.Repeat([]byte("h"), 1<<20)
		s.sendHuge(
			rec{topic: "in", key: []byte{}, value: []byte("v")},
			rec{topic: "in", value: []byte("v")},
			rec{topic: "in", key: huge, value: []byte("v")},
			rec{topic: "in", key: []byte("k")},
			rec{topic: "in", key: []byte{}, value: []byte{}},
			rec{topic: "rows", key: []byte("k"), value: []byte("v")},
			rec{topic: "rows", key: []byte("gone"), value: []byte("v")},
			rec{topic: "rows", key: []byte("gone")},
			rec{topic: "rows", key: []byte{}, value: []byte{}},
		)
		d := s.start("a", top, nil, deadLetter)
		s.await("the offsets", func() bool { return s.committed("in")[0].Offset == 5 && s.committed("rows")[0].Offset == 4 })
		var stages []string
		for _, r := range s.read(deadLetters) {
			stages = append(stages, r.origin())
		}
		if fmt.Sprint(stages) != "[in/0@1 null-key in/0@2 commit]" && fmt.Sprint(stages) != "[in/0@1 null-key in/0@2 oversize]" {
			t.Errorf("dead letters %q", stages)
		}
		// Restored from the changelogs alone, the state is the same.
		d.stop()
		n := s.start("a", top, nil, deadLetter)
		n.awaitTasks(2)
		s.send(
			rec{topic: "in", key: []byte{}, value: []byte("v")}, rec{topic: "in", key: []byte("k")},
		)
		s.await("the offsets", func() bool { return s.committed("in")[0].Offset == 7 })
		last := make(map[string]byte)
		for _, r := range s.read("out") {
			last[string(r.key)] = r.value[7]
		}
		if len(last) != 2 || last[""] != 3 || last["k"] != 2 {
			t.Errorf("counts %v", last)
		}
		rows := make(map[string]string)
		for _, r := range s.read("app-table-changelog") {
			if r.value == nil {
				delete(rows, string(r.key))
			} else {
				rows[string(r.key)] = string(r.value)
			}
		}
		if len(rows) != 2 || rows["k"] != "v" || rows[""] != "" {
			t.Errorf("table %q", rows)
		}
	})
}

// A timestamp that the output topic refuses is a record error before anything is produced: the broker would
// refuse the whole batch.
func TestBadTimestamps(t *testing.T) {
	t.Parallel()
	simulate(t, embedded.Options{Topics: map[string]int{"in": 1}}, func(t *testing.T, s *scene) {
		s.mustCreate("out", 1, map[string]string{"message.timestamp.after.max.ms": "3600000", "message.timestamp.before.max.ms": "86400000"})
		now := time.Now()
		for _, ms := range []int64{now.UnixMilli(), now.Add(2 * time.Hour).UnixMilli(), now.Add(-48 * time.Hour).UnixMilli(), now.Add(time.Minute).UnixMilli()} {
			s.send(rec{topic: "in", key: []byte("k"), value: []byte(fmt.Sprint(ms - now.UnixMilli())), ms: ms})
		}
		n := s.start("a", copying(), nil, deadLetter)
		s.await("offset 4", func() bool { return s.committed("in")[0].Offset == 4 })
		if got := fmt.Sprint(values(s.read("out"))); got != "[0 60000]" {
			t.Errorf("out holds %s", got)
		}
		dead := s.read(deadLetters)
		if len(dead) != 2 || dead[0].origin() != "in/0@1 timestamp" || dead[1].origin() != "in/0@2 timestamp" {
			t.Errorf("dead letters %v", dead)
		}
		if n.metric("transactions_total", "outcome", "aborted") != 0 {
			t.Error("a transaction was aborted")
		}
	})
}
