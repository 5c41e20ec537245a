package watermark

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

type bulky struct{ swing }

func (g *bulky) Append(dst []byte) []byte { return append(dst, make([]byte, MaxState+1)...) }

func TestSettings(t *testing.T) {
	s := settings(t)
	if s.Name != "bounded out-of-orderness 0s" || s.IdleAfter != time.Minute || s.MaxDrift != 5*time.Minute ||
		s.MaxFuture != 0 || s.AllIdle != Stay || s.Missing != Fail || s.Max || s.NeedsValue || s.Delay != 0 {
		t.Errorf("defaults: %+v", s)
	}
	s = settings(t, MaxFuture(time.Minute), MaxFuture(time.Hour), IdleAfter(-time.Second), Align(-5), OnMissing(PartitionTime),
		Punctuated("marker", marker))
	if s.MaxFuture != time.Hour || s.IdleAfter != Never || s.MaxDrift != Never || s.Missing != PartitionTime ||
		!s.NeedsValue || s.ValueType != reflect.TypeFor[int]() {
		t.Errorf("%+v", s)
	}
	s = settings(t, IdleAfter(0), Align(0), StreamTime(), WhenAllIdle(AdvanceWithClock))
	if s.IdleAfter != DefaultIdleAfter || s.MaxDrift != DefaultMaxDrift || !s.Max || s.AllIdle != AdvanceWithClock {
		t.Errorf("%+v", s)
	}
	if s := settings(t, OutOfOrderness(time.Second)); s.Delay != time.Second {
		t.Errorf("delay %v", s.Delay)
	}
}

func TestSettingsString(t *testing.T) {
	for want, opts := range map[string][]Option{
		"bounded out-of-orderness 0s, idle after 1m0s, align 5m0s, all idle: stay, no timestamp: fail": nil,
		"bounded out-of-orderness 30s, idle after 5s, max future 1h0m0s, align never, all idle: advance with clock, no timestamp: late": {
			OutOfOrderness(30 * time.Second), IdleAfter(5 * time.Second), MaxFuture(time.Hour), Align(Never), WhenAllIdle(AdvanceWithClock), OnMissing(Late),
		},
		"append time, idle after never, align 5m0s, all idle: stay, no timestamp: partition time": {AppendTime(), IdleAfter(Never), OnMissing(PartitionTime)},
	} {
		if got := settings(t, opts...).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if a, m, s := AllIdle(9).String(), Missing(9).String(), State(9).String(); a != "AllIdle(9)" || m != "Missing(9)" || s != "State(9)" {
		t.Error(a, m, s)
	}
}

func TestSettingsErrors(t *testing.T) {
	for want, opts := range map[string][]Option{
		"watermark: New: an option is nil":                                                                                              {nil},
		"watermark: Ascending, AppendTime: a source has one strategy, not 2":                                                            {Ascending(), AppendTime()},
		"watermark: OutOfOrderness: negative delay -1s":                                                                                 {OutOfOrderness(-time.Second)},
		"watermark: OutOfOrderness: 1µs is not a whole number of milliseconds":                                                          {OutOfOrderness(time.Microsecond)},
		"watermark: IdleAfter: 1µs is not a whole number of milliseconds":                                                               {IdleAfter(time.Microsecond)},
		"watermark: Align: 1µs is not a whole number of milliseconds":                                                                   {Align(time.Microsecond)},
		"watermark: MaxFuture: 1µs is not a whole number of milliseconds":                                                               {MaxFuture(time.Microsecond)},
		"watermark: MaxFuture: negative distance -1ns":                                                                                  {MaxFuture(-1)},
		"watermark: WhenAllIdle: no rule 3":                                                                                             {WhenAllIdle(3)},
		"watermark: OnMissing: no policy 3":                                                                                             {OnMissing(3)},
		"watermark: Punctuated: needs a name and a function":                                                                            {Punctuated("", marker)},
		"watermark: Punctuated: needs a name and a function ":                                                                           {Punctuated[int]("x", nil)},
		"watermark: Custom: needs a name and a function":                                                                                {Custom("", newSwing)},
		"watermark: Custom: needs a name and a function ":                                                                               {Custom("x", nil)},
		"watermark: Custom: x makes a nil generator":                                                                                    {Custom("x", func() Generator { return nil })},
		"watermark: Custom: the state of x has 257 bytes, more than 256":                                                                {Custom("x", func() Generator { return &bulky{} })},
		"watermark: FromHeader: needs a header key":                                                                                     {FromHeader("")},
		"watermark: WhenAllIdle: AdvanceWithClock needs a strategy with a known delay, such as OutOfOrderness":                          {FromHeader("w"), WhenAllIdle(AdvanceWithClock)},
		"watermark: WhenAllIdle: advance to max has no effect where IdleAfter is Never":                                                 {IdleAfter(Never), WhenAllIdle(AdvanceToMax)},
		"watermark: OutOfOrderness: negative delay -1s\nwatermark: MaxFuture: negative distance -1s\nwatermark: OnMissing: no policy 9": {OutOfOrderness(-time.Second), MaxFuture(-time.Second), OnMissing(9)},
	} {
		for len(want) > 0 && want[len(want)-1] == ' ' {
			want = want[:len(want)-1]
		}
		_, err := New(opts...)
		var o *OptionError
		if err == nil || err.Error() != want || !errors.As(err, &o) || o.Option == "" {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
