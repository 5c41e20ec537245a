package window

import (
	"encoding/hex"
	"errors"
	"testing"
)

func TestPaneHeader(t *testing.T) {
	for _, c := range []struct {
		p    Pane
		want string
	}{
		{Pane{Timing: TimingEarly, NonSpeculative: -1, First: true}, "040001"},
		{Pane{Timing: TimingEarly, Index: 3, NonSpeculative: -1}, "000601"},
		{Pane{Timing: TimingOnTime, First: true, Last: true}, "0d0000"},
		{Pane{Timing: TimingOnTime, Index: 3}, "010600"},
		{Pane{Timing: TimingLate, Index: 100, NonSpeculative: 64, Last: true}, "0ac8018001"},
	} {
		b := AppendPaneHeader(nil, &c.p)
		if have := hex.EncodeToString(b); have != c.want {
			t.Errorf("%+v: %s, want %s", c.p, have, c.want)
		}
		var p Pane
		if err := ParsePaneHeader(&p, b); err != nil || p != c.p {
			t.Errorf("%+v, want %+v (%v)", p, c.p, err)
		}
		for n := range b {
			if err := ParsePaneHeader(&p, b[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%x: %v", b[:n], err)
			}
		}
	}
	for _, s := range []string{"", "030000", "140000", "800000", "000101", "000003", "04000100"} {
		b, _ := hex.DecodeString(s)
		var p Pane
		if err := ParsePaneHeader(&p, b); !errors.Is(err, ErrMalformed) || p != (Pane{}) {
			t.Errorf("%s: %+v, %v", s, p, err)
		}
	}
}

func TestOtherHeaders(t *testing.T) {
	b := Bounds{-2, 0x0102030405060708}
	enc := AppendBoundsHeader(nil, b)
	if have := hex.EncodeToString(enc); have != "fffffffffffffffe0102030405060708" {
		t.Error(have)
	}
	if have, err := ParseBoundsHeader(enc); err != nil || have != b {
		t.Error(have, err)
	}
	for _, x := range [][]byte{nil, enc[:15], append(enc, 0), make([]byte, 16)} {
		if _, err := ParseBoundsHeader(x); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v", x, err)
		}
	}
	enc = AppendWatermarkHeader(nil, -3)
	if have := hex.EncodeToString(enc); have != "fffffffffffffffd" {
		t.Error(have)
	}
	if have, err := ParseWatermarkHeader(enc); err != nil || have != -3 {
		t.Error(have, err)
	}
	if _, err := ParseWatermarkHeader(enc[1:]); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	for op, want := range map[Op]string{OpRetract: "01 -U", OpAssert: "02 +U", OpDelete: "03 -D"} {
		enc := AppendOpHeader(nil, op)
		if have := hex.EncodeToString(enc) + " " + op.String(); have != want {
			t.Errorf("%s, want %s", have, want)
		}
		if have, err := ParseOpHeader(enc); err != nil || have != op {
			t.Error(have, err)
		}
	}
	for _, x := range [][]byte{nil, {0}, {4}, {1, 1}} {
		if _, err := ParseOpHeader(x); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v", x, err)
		}
	}
	if PaneHeader+BoundsHeader+WatermarkHeader+OpHeader != "tm-ptm-wintm-wmtm-op" {
		t.Error("the keys of headers never change")
	}
}

func TestState(t *testing.T) {
	for _, c := range []struct {
		s    State
		want string
	}{
		{State{}, "00"},
		{State{Flags: Dirty}, "01"},
		{State{Flags: Emitted | Past, Panes: 300, NonSpeculative: 2}, "0eac0202"},
		{State{Flags: Dirty, Count: 5}, "1105"},
		{State{Flags: Emitted, Panes: 1, Hash: 0x0102030405060708}, "2a01000102030405060708"},
		{State{Flags: Dirty | Emitted | Past, Panes: 1, Count: 1<<32 - 1, Hash: 9}, "3f0100ffffffff0f0000000000000009"},
	} {
		b := c.s.Append(nil)
		if have := hex.EncodeToString(b); have != c.want {
			t.Errorf("%+v: %s, want %s", c.s, have, c.want)
		}
		s, rest, err := ParseState(append(b, 0xaa))
		if err != nil || s != c.s || len(rest) != 1 {
			t.Errorf("%+v, want %+v (%x, %v)", s, c.s, rest, err)
		}
		for n := range b {
			if _, _, err := ParseState(b[:n]); !errors.Is(err, ErrMalformed) {
				t.Errorf("%x: %v", b[:n], err)
			}
		}
	}
	for _, s := range []string{"40", "80", "11ffffffff1f", "11ffffffffffffffffffffff"} {
		b, _ := hex.DecodeString(s)
		if _, _, err := ParseState(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestHash(t *testing.T) {
	// Test vectors of FNV-1a.
	for s, want := range map[string]uint64{"": 0xcbf29ce484222325, "a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8} {
		if have := Hash([]byte(s)); have != want {
			t.Errorf("%q: %x, want %x", s, have, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x3f\x01\x00\xff\xff\xff\xff\x0f\x00\x00\x00\x00\x00\x00\x00\x09"))
	f.Add([]byte("\x0a\xc8\x01\x80\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, _, err := ParseState(b); err == nil {
			if again, rest, err := ParseState(s.Append(nil)); err != nil || len(rest) != 0 || again != s {
				t.Errorf("%+v, again %+v (%v)", s, again, err)
			}
		}
		var p, again Pane
		if err := ParsePaneHeader(&p, b); err == nil {
			if err := ParsePaneHeader(&again, AppendPaneHeader(nil, &p)); err != nil || again != p {
				t.Errorf("%+v, again %+v (%v)", p, again, err)
			}
		}
	})
}
