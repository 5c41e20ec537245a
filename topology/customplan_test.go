package topology_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// Processors that share a store judge its rows by one watermark, that of the processor that declared it.
func TestSharedStoresOfTime(t *testing.T) {
	kv := topology.KeyValue[string, string]("kv", topology.TTL(10*time.Millisecond))
	ro := topology.ReadOnly[string, string]("kv")
	top := topology.New("t")
	top.Stream[string, string]("in").Process("p", func(out emitter, r message) error {
		return kv.Put(out, r.Key, r.Value)
	}, kv)
	top.Stream[string, string]("ask").Process("q", func(out emitter, r message) error {
		v, ok, err := kv.Get(out, r.Key)
		w, ok2, err2 := ro.Get(out, r.Key)
		if v != w || ok != ok2 {
			t.Errorf("%q %t, %q %t", v, ok, w, ok2)
		}
		out.Emit(r.Key, fmt.Sprint(v, ok))
		return cmp.Or(err, err2)
	}, kv, ro).To("out")
	d := start(t, top)
	d.feeds(t, "in", rec(0, "k", "1"))
	d.feeds(t, "ask", rec(9, "k", ""), rec(10, "k", ""))
	d.feeds(t, "in", rec(20, "x", ""))
	d.feeds(t, "ask", rec(5, "k", ""))
	d.expect(t, "out@9 k=1true", "out@10 k=false", "out@5 k=false")
}

func TestCustomStoresPlan(t *testing.T) {
	top := topology.New("t")
	p := timed{}
	top.Stream[string, string]("in").KeyBy("by", self).ProcessWith("p", p.make,
		topology.Timers[string]("timers"), topology.ProcessingTimers[string]("alarms"), topology.Every(time.Minute),
		topology.HoldWatermark(), topology.KeyValue[string, int64]("short", topology.TTL(time.Minute)),
		topology.KeyValue[string, int64]("clocked", topology.WallTTL(time.Hour)),
		topology.Windows[string, string]("w", window.Tumbling(time.Minute), time.Hour),
		topology.Sessions[string, int64]("s", time.Hour), topology.Versioned[string, string]("v", time.Hour),
		topology.Lists[string, string]("l"), topology.KeepsKey()).Count("n")
	golden(t, "customstores.txt", build(t, top).Describe())
	// An operator that only follows the clock asks for no event time.
	top = topology.New("t")
	top.Stream[string, string]("in").ProcessWith("p", p.make, topology.Every(time.Second)).To("out")
	if s := build(t, top).Subs[0]; !s.Timed || s.Sources[0].Time != nil {
		t.Errorf("%+v", s)
	}
}

func TestCustomStoresBuildErrors(t *testing.T) {
	none := func(emitter, message) error { return nil }
	top := topology.New("t")
	s := top.Stream[string, string]("in")
	s.Process("a", none, topology.KeyValue[string, string]("ttl", topology.TTL(0)))
	s.Process("b", none, topology.Windows[string, string]("session", window.Session(time.Second), time.Hour))
	s.Process("c", none, topology.Windows[string, string]("bad", window.Tumbling(0), time.Hour))
	s.Process("d", none, topology.Sessions[string, string]("keep", 0))
	s.Process("e", none, topology.Versioned[string, string]("option", time.Hour, topology.TTL(time.Hour)))
	s.Process("f", none, topology.Lists[string, string]("l"), topology.ReadOnly[string, string]("l"))
	s.Process("g", none, topology.Lists[map[string]int, string]("key"))
	_, err := top.Build()
	for _, want := range []string{
		"a: store ttl: a time to live of 0s", "b: store session: session windows depend", "c: store bad", "d: store keep: keeps sessions for of 0s",
		"e: option TTL has no meaning", `f: store "l" is of kind list`, "g: the key type is not fit",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no error %q in %v", want, err)
		}
	}
}
