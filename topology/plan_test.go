package topology_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/topology"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

type ad struct {
	Campaign string
	Price    int64
}

func (a ad) campaign() string { return a.Campaign }
func (a ad) price() int64     { return a.Price }

// campaigns is a topology with a bit of everything.
func campaigns() *topology.Topology {
	top := topology.New("campaigns")
	budgets := top.Table[string, int64]("budgets", "budget")
	ads := top.Stream[string, ad]("ads").Filter(func(a ad) bool { return a.Price > 0 })
	ads.Split().
		When("cheap", func(a ad) bool { return a.Price < 10 }, func(s *topology.Stream[string, ad]) { s.To("cheap") }).
		Otherwise("dear", func(s *topology.Stream[string, ad]) { s.To("dear") })
	byCampaign := ads.Merge(top.Stream[string, ad]("late-ads")).
		KeyBy("by-campaign", ad.campaign, topology.Partitions(6))
	byCampaign.Sum("spend", ad.price, topology.EveryUpdate()).
		Filter(func(n int64) bool { return n > 100 }).
		To("spend")
	seen, odd := topology.KeyValue[string, ad]("seen"), topology.Output[string, string]("odd")
	p := byCampaign.Process("fraud", func(topology.Emitter[string, string], topology.Record[string, ad]) error { return nil },
		seen, odd, topology.ReadOnly[string, int64]("spend"))
	p.To("fraud")
	p.Side(odd).Through("odd").Map(strings.ToUpper).To("odd-upper")
	budgets.Map(func(n int64) string { return fmt.Sprint(n) }).ToStream().To("budgets-text")
	return top
}

func build(tb testing.TB, top *topology.Topology) *topology.Plan {
	tb.Helper()
	p, err := top.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -rewrite and look at the diff):\n%s", path, got)
	}
}

func TestGolden(t *testing.T) {
	p := build(t, campaigns())
	golden(t, "campaigns.txt", p.Describe())
	golden(t, "campaigns.mmd", p.Mermaid())
	var b strings.Builder
	fmt.Fprintf(&b, "state %s\nbuild %s\n", p.StateFingerprint, p.BuildFingerprint)
	for _, o := range p.Operators {
		fmt.Fprintf(&b, "%s %s in %s: state %q build %s\n", o.Kind, o.Name, o.Sub, o.StateFingerprint, o.BuildFingerprint)
	}
	golden(t, "campaigns.fingerprints", b.String())
}

func TestPlanIsTheSameEachTime(t *testing.T) {
	first := build(t, campaigns())
	for range 20 {
		p := build(t, campaigns())
		if p.Describe() != first.Describe() || p.Mermaid() != first.Mermaid() || p.BuildFingerprint != first.BuildFingerprint {
			t.Fatal("two builds of one topology differ")
		}
	}
	top := campaigns()
	a, b := build(t, top), build(t, top)
	if a.Describe() != b.Describe() || a.StateFingerprint != b.StateFingerprint || a.BuildFingerprint != b.BuildFingerprint {
		t.Error("the second Build of one topology differs")
	}
}

func TestPlan(t *testing.T) {
	p := build(t, campaigns())
	var got strings.Builder
	for _, s := range p.Subs {
		for i := range s.Sources {
			if s.Sources[i].Time != nil {
				t.Errorf("%s: nobody asks for the time of %s", s.ID, s.Sources[i].Topic)
			}
		}
		fmt.Fprintf(&got, "%s %v %v %v\n", s.ID, s.Operators, s.Sources, s.Sinks)
	}
	const want = `ads [] [{ads  <nil>} {late-ads  <nil>}] [{cheap  0} {dear  0} { by-campaign 6}]
budget [budget] [{budgets  <nil>}] [{budgets-text  0}]
by-campaign [by-campaign seen spend] [{ by-campaign <nil>}] [{spend  0} {fraud  0} {odd  0}]
odd [] [{odd  <nil>}] [{odd-upper  0}]
`
	if got.String() != want {
		t.Errorf("got:\n%s", got.String())
	}
}

// What must change a fingerprint does, and what must not does not.
func TestFingerprints(t *testing.T) {
	type variant func(s *topology.Stream[string, string])
	base := variant(func(s *topology.Stream[string, string]) {
		s.Map(self).KeyBy("by", self).Count("n").To("out")
	})
	plan := func(v variant) *topology.Plan {
		top := topology.New("t")
		v(top.Stream[string, string]("in"))
		return build(t, top)
	}
	a := plan(base)
	for _, c := range []struct {
		name         string
		state, build bool // whether it changes
		v            variant
	}{
		{"same", false, false, base},
		{"another function", false, false, func(s *topology.Stream[string, string]) {
			s.Map(strings.ToUpper).KeyBy("by", self).Count("n").To("out")
		}},
		{"stateless operator added", false, true, func(s *topology.Stream[string, string]) {
			s.Map(self).Map(self).KeyBy("by", self).Count("n").To("out")
		}},
		{"another kind", false, true, func(s *topology.Stream[string, string]) {
			s.Peek(func(string) {}).KeyBy("by", self).Count("n").To("out")
		}},
		{"another output topic", false, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", self).Count("n").To("out-2")
		}},
		{"every update", false, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", self).Count("n", topology.EveryUpdate()).To("out")
		}},
		{"another id", true, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", self).Count("m").To("out")
		}},
		{"another kind of state", true, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", self).Sum("n", func(string) int64 { return 1 }).To("out")
		}},
		{"another schema", true, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", self).Sum("n", func(string) int32 { return 1 }).To("out")
		}},
		{"another key", true, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", func(string) int64 { return 1 }).Count("n").To("out")
		}},
		{"partitions", true, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", self, topology.Partitions(3)).Count("n").To("out")
		}},
		{"no cut", true, true, func(s *topology.Stream[string, string]) { s.Map(self).Count("n").To("out") }},
		{"store added", true, true, func(s *topology.Stream[string, string]) {
			s.Map(self).KeyBy("by", self).Count("n").To("out")
			s.Count("m")
		}},
	} {
		b := plan(c.v)
		if got := a.StateFingerprint != b.StateFingerprint; got != c.state {
			t.Errorf("%s: state changed: %t", c.name, got)
		}
		if got := a.BuildFingerprint != b.BuildFingerprint; got != c.build {
			t.Errorf("%s: build changed: %t", c.name, got)
		}
	}
}

func TestCheckNames(t *testing.T) {
	top := topology.New("t")
	s := top.Stream[string, string]("shop-late")
	s.KeyBy(strings.Repeat("x", 170), self).Count("n").To("shop-control")
	s.To("shop_dead-letter")
	p := build(t, top)
	if err := topology.CheckNames(p, "other"); err != nil {
		t.Error(err)
	}
	err := topology.CheckNames(p, "shop")
	for _, want := range []string{`source(shop-late): topic "shop-late" is the app's own`, `sink(shop-control)`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	err = topology.CheckNames(p, strings.Repeat("a", 70))
	if err == nil || !strings.Contains(err.Error(), "-repartition\" is longer than 249") {
		t.Error(err)
	}
	if err := topology.CheckNames(p, "a/b"); err == nil {
		t.Error("app id a/b was accepted")
	}
}
