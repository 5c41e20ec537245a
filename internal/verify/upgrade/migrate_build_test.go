package upgrade_test

import (
	"strings"
	"testing"

	"github.com/tidemark/tidemark/topology"
)

func TestMigrationsThatDoNotFit(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []topology.Option
		want string
	}{
		{"no version", []topology.Option{topology.Migrate(0, nil, toMoney)}, "StateVersion(0): from 1 to 255"},
		{"version 0", []topology.Option{topology.StateVersion(0)}, "versions begin with 1"},
		{"version too large", []topology.Option{topology.StateVersion(256)}, "StateVersion(256): from 1 to 255"},
		{"not from below", []topology.Option{topology.StateVersion(1), topology.Migrate(1, nil, toMoney)}, "Migrate(1): from a version below StateVersion(1)"},
		{"twice", []topology.Option{topology.StateVersion(1), topology.Migrate(0, nil, toMoney), topology.Migrate(0, nil, toMoney)}, "Migrate(0) is given twice"},
		{"a gap", []topology.Option{topology.StateVersion(2), topology.Migrate(0, nil, toMoney)}, "Migrate(1) is missing"},
		{"to another type", []topology.Option{topology.StateVersion(1), topology.Migrate(0, nil, func(s string) (int64, error) { return 0, nil })},
			"Migrate(0) makes int64, version 1 is upgrade_test.spending"},
		{"links that do not meet", []topology.Option{topology.StateVersion(2), topology.Migrate(0, nil, func(s string) (string, error) { return s, nil }),
			topology.Migrate(1, nil, toMoney)}, "Migrate(0) makes string, version 1 is int64"},
		{"no function", []topology.Option{topology.StateVersion(1), topology.Migrate[int64, spending](0, nil, nil)}, "Migrate(0): the function is nil"},
		{"no codec", []topology.Option{topology.StateVersion(1), topology.Migrate(0, nil, func(func()) (spending, error) { return spending{}, nil })},
			"no codec for the values of version 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := topology.New("app")
			money(tt.opts...)(top)
			if _, err := top.Build(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	top := topology.New("app")
	in(top).KeyBy("by", self, topology.StateVersion(1)).Count("n")
	if _, err := top.Build(); err == nil || !strings.Contains(err.Error(), "option StateVersion has no meaning here") {
		t.Errorf("a repartition topic has no versions: %v", err)
	}
	// What leaves through a topic is in the plain form.
	top = topology.New("app")
	in(top).Aggregate("n", topology.Fold(func(m spending, _ string) spending { return m }), topology.StateVersion(1)).To("out")
	plan, err := top.Build()
	if err != nil {
		t.Fatal(err)
	}
	if text := plan.Describe(); !strings.Contains(text, "sink(out) <- n as string, json:{Micros:int}") || !strings.Contains(text, "version 1 of json:{Micros:int}") {
		t.Error(text)
	}
}
