package system_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark/tidemark/bench/internal/system"
)

func TestEventsComeBack(t *testing.T) {
	at := time.UnixMicro(1767225600123456)
	for _, c := range []struct {
		kind   string
		fields []any
		want   []string
	}{
		{"phase", []any{"initialising producers"}, []string{"initialising producers"}},
		{"restore", []any{"rows/3", "local", int64(5), true}, []string{"rows/3", "local", "5", "true"}},
	} {
		var out bytes.Buffer
		system.PrintEvent(&out, at, c.kind, c.fields...)
		e, ok := system.ParseEvent(strings.TrimSuffix(out.String(), "\n"))
		if !ok || !e.At.Equal(at) || e.Kind != c.kind || !slices.Equal(e.Fields, c.want) {
			t.Errorf("%q: %+v, %v", out.String(), e, ok)
		}
	}
	for _, line := range []string{"", "progress 5", "event", "event x 0.1 phase a", "event 5 y phase a", "event 5 0.1 phase"} {
		if e, ok := system.ParseEvent(line); ok {
			t.Errorf("%q: %+v", line, e)
		}
	}
}
