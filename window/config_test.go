package window

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWindowErrors(t *testing.T) {
	for _, c := range []struct {
		w    Window
		want string
	}{
		{Window{}, "window: no window: invalid"},
		{Tumbling(0), "window: tumbling: size 0s is too short: invalid"},
		{Tumbling(-time.Second), "window: tumbling: size -1s is too short: invalid"},
		{Tumbling(1500 * time.Microsecond), "window: tumbling: size 1.5ms is not a whole number of milliseconds: invalid"},
		{Hopping(time.Second, 0), "window: hopping: hop 0s is too short: invalid"},
		{Sliding(-1), "window: sliding: difference -1ns is not a whole number of milliseconds: invalid"},
		{Session(0), "window: session: gap 0s is too short: invalid"},
		{Cumulate(0, time.Hour), "window: cumulate: step 0s is too short: invalid"},
		{Cumulate(7*time.Minute, time.Hour), "window: cumulate: the maximum 1h0m0s is not a multiple of the step 7m0s: invalid"},
		{Cumulate(time.Hour, time.Minute), "window: cumulate: the maximum 1m0s is not a multiple of the step 1h0m0s: invalid"},
		{Day(nil), "window: day: no time zone: invalid"},
		{Month(time.Local), "window: month: the zone of the machine is not the same everywhere: name one: invalid"},
		{Week(time.UTC, 7), "window: week: no weekday: 7: invalid"},
		{Day(time.UTC).Offset(time.Hour), "window: day: day windows have no offset: invalid"},
		{Session(time.Hour).Offset(time.Hour), "window: session: session windows have no offset: invalid"},
		{Tumbling(time.Hour).Offset(time.Hour), "window: tumbling: offset 1h0m0s is not shorter than 1h0m0s: invalid"},   // W-NEG-OFFSET
		{Tumbling(time.Hour).Offset(-time.Hour), "window: tumbling: offset -1h0m0s is not shorter than 1h0m0s: invalid"}, // W-NEG-OFFSET
		{Tumbling(0).Offset(time.Hour), "window: tumbling: size 0s is too short: invalid"},
	} {
		err := c.w.Err()
		if err == nil || err.Error() != c.want || !errors.Is(err, ErrInvalid) {
			t.Errorf("%v, want %s", err, c.want)
		}
		if have := c.w.Assign(nil, 1); have != nil || c.w.Kind() != 0 {
			t.Errorf("%s: assigns %v", c.want, have)
		}
	}
}

// TestWindowString also stands for the part of W-END-READBACK and W-CAL-DAY that belongs here: size and zone are part of
// the description, and so of the fingerprint of the state.
func TestWindowString(t *testing.T) {
	for _, c := range []struct {
		w    Window
		want string
	}{
		{Tumbling(time.Minute), "tumbling 1m0s"},
		{Tumbling(time.Minute).Offset(-10 * time.Second), "tumbling 1m0s offset 50s"},
		{Hopping(5*time.Minute, time.Minute), "hopping 5m0s every 1m0s"},
		{Hopping(5*time.Minute, time.Minute).Offset(2 * time.Minute), "hopping 5m0s every 1m0s"},
		{Sliding(0), "sliding 0s"},
		{Session(30 * time.Minute), "session 30m0s"},
		{Global(), "global"},
		{Cumulate(time.Minute, time.Hour).Offset(time.Minute), "cumulate 1m0s up to 1h0m0s offset 1m0s"},
		{Day(time.UTC), "day in UTC, rules 88201fb960ff6465"},
		{Week(time.UTC, time.Monday), "week from Monday in UTC, rules 88201fb960ff6465"},
	} {
		if c.w.Err() != nil || c.w.String() != c.want {
			t.Errorf("%q, want %q (%v)", c.w, c.want, c.w.Err())
		}
	}
}

func TestNew(t *testing.T) {
	c, err := New(Tumbling(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if want := "tumbling 1m0s; accumulating; lateness 0s; early none; late each element; on time always; on close if new"; c.String() != want {
		t.Errorf("%s, want %s", &c, want)
	}
	c, err = New(Session(time.Minute), AllowedLateness(Forever), Early(AnyOf(EveryAligned(time.Second), AfterCount(100), AfterCount(7))),
		Late(Every(time.Minute)), OnTime(Never), OnClose(Never), Retracting(), EmitAlways(), Origin())
	if err != nil {
		t.Fatal(err)
	}
	if want := "session 1m0s; retracting; never on time; lateness forever; early every 1s aligned or after 7; late every 1m0s; " +
		"on time never; on close never; emit always; origin"; c.String() != want {
		t.Errorf("%s, want %s", &c, want)
	}
	if !c.ByOrigin() || c.Lateness() != maxTime {
		t.Error(c.ByOrigin(), c.Lateness())
	}
	// All errors come at once.
	_, err = New(Tumbling(0), AllowedLateness(-1), Early(AfterCount(0)), Late(Every(0)), OnTime(0), OnClose(9))
	if err == nil || !errors.Is(err, ErrInvalid) || strings.Count(err.Error(), "\n") != 5 {
		t.Errorf("%v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	w := Tumbling(time.Minute)
	for _, opts := range [][]Option{
		{OnTime(Never), OnClose(Never)},
		{OnTime(Never), OnClose(Never), AllowedLateness(time.Hour), Late(None())},
		{Early(AnyOf())},
		{AllowedLateness(time.Microsecond)},
		{Early(AnyOf(Every(time.Second), EveryAligned(time.Second)))},
		{Early(Every(time.Microsecond))},
	} {
		if _, err := New(w, opts...); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
	if _, err := New(w, OnTime(Never), OnClose(Never), AllowedLateness(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		w    Window
		opts []Option
		want string
	}{
		{Tumbling(time.Minute), nil, ""},
		{Hopping(time.Minute, time.Hour), nil, "in the gaps"},
		{Hopping(7*time.Minute, 3*time.Minute), nil, "does not divide"},
		{Global(), nil, "no early trigger"},
		{Global(), []Option{Early(EachElement())}, ""},
		{Tumbling(time.Minute), []Option{Late(Every(time.Second))}, "no effect"},
		{Tumbling(time.Minute), []Option{Late(None())}, ""},
		{Tumbling(time.Minute), []Option{Late(None()), AllowedLateness(time.Second)}, "refused"},
		{Tumbling(time.Minute), []Option{OnTime(IfNew), EmitAlways()}, "as Always"},
	} {
		cfg, err := New(c.w, c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		if have := strings.Join(cfg.Warnings(), "; "); (have == "") != (c.want == "") || !strings.Contains(have, c.want) {
			t.Errorf("%v: %q, want %q", &cfg, have, c.want)
		}
	}
	up, _ := New(Tumbling(time.Minute), AllowedLateness(time.Hour))
	down, _ := New(Tumbling(time.Hour), AllowedLateness(time.Minute))
	if have := ChainWarning(&up, &down); !strings.HasPrefix(have, "W-LATENESS-CHAIN: the allowed lateness 1m0s is less than 1h0m0s") {
		t.Error(have)
	}
	if have := ChainWarning(&down, &up); have != "" {
		t.Error(have)
	}
}

func TestDeadline(t *testing.T) {
	c, err := New(Tumbling(time.Hour), AllowedLateness(time.Hour), Early(Every(10*time.Second)), Late(EveryAligned(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []struct {
		arm       Arm
		now, want int64
	}{
		{ArmEarly, 0, 10000}, {ArmEarly, 1, 10625}, {ArmEarly, 625, 10625}, {ArmEarly, -1, 10000},
		{ArmLate, 0, 60000}, {ArmLate, 59999, 60000}, {ArmLate, -1, 0}, {ArmLate, maxTime, maxTime},
	} {
		if have := c.Deadline(d.arm, d.now); have != d.want {
			t.Errorf("%d at %d: %d, want %d", d.arm, d.now, have, d.want)
		}
	}
	c, _ = New(Tumbling(time.Hour), Early(Every(300*time.Millisecond)))
	if have := c.Deadline(ArmEarly, 5); have != 400 {
		t.Errorf("the least quantum: %d", have)
	}
	if have := c.Deadline(ArmLate, 5); have != maxTime {
		t.Errorf("no trigger: %d", have)
	}
}

// TestEnds checks that the ends that are complete, expired and forgotten at a watermark are those of the windows that
// are, also at the ends of time.
func TestEnds(t *testing.T) {
	watermarks := []int64{minTime, minTime + 1, minTime + 10, -1, 0, 9, 10, 15, 100, maxTime - 12, maxTime - 1, maxTime}
	ends := []int64{minTime + 1, minTime + 2, minTime + 10, -1, 0, 1, 6, 10, 11, 100, maxTime - 11, maxTime - 1, maxTime}
	for _, w := range []Window{Tumbling(time.Millisecond), Session(10 * time.Millisecond)} {
		for _, lateness := range []time.Duration{0, 5 * time.Millisecond, Forever} {
			c, err := New(w, AllowedLateness(lateness))
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range watermarks {
				for _, end := range ends {
					b := Bounds{minTime, end}
					have := []bool{end <= c.CompleteEnd(at), end <= c.ExpiredEnd(at), end <= c.ForgottenEnd(at)}
					want := []bool{c.Complete(b, at), c.Expired(b, at), at != minTime && at >= c.Forgotten(b)}
					if !slices.Equal(have, want) {
						t.Errorf("%v at %d, end %d: %t, want %t", &c, at, end, have, want)
					}
				}
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	c, _ := New(Tumbling(10*time.Millisecond), AllowedLateness(5*time.Millisecond))
	none, _ := New(Tumbling(10*time.Millisecond), AllowedLateness(5*time.Millisecond), Late(None()))
	b := Bounds{0, 10}
	for _, x := range []struct {
		w          int64
		want, late Reason
		by         int64
	}{
		{minTime, Accepted, Accepted, 0}, {8, Accepted, Accepted, 0}, {9, Accepted, ReasonLateSuppressed, 0},
		{13, Accepted, ReasonLateSuppressed, 4}, {14, ReasonExpired, ReasonExpired, 5}, {maxTime, ReasonExpired, ReasonExpired, maxTime - 9},
	} {
		if c.Refuses(b, x.w) != x.want || none.Refuses(b, x.w) != x.late || c.LateBy(b, x.w) != x.by {
			t.Errorf("%d: %v, %v, %d", x.w, c.Refuses(b, x.w), none.Refuses(b, x.w), c.LateBy(b, x.w))
		}
	}
	if ReasonExpired.String() != "expired" || ReasonLateSuppressed.String() != "late_suppressed" || Accepted.String() != "" {
		t.Error("the reasons stand in headers")
	}
}
