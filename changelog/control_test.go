package changelog

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControlGolden(t *testing.T) {
	cases := []struct {
		r          ControlRecord
		key, value string
	}{
		{SubRecord(SubTopology{ID: "a", Operators: []string{"a", "b"}, Topics: []string{"t"}}), "sub/a", "01" + "020161" + "0162" + "010174"},
		{StoreRecordOf(sampleStore()), "store/count", "01" + "026b76" + "06737472696e67" + "05696e743634" + "01"},
		{FormatRecord("progress", 300), "format/progress", "01" + "ac02"},
		{StateRecordOf(StateRecord{Fingerprint: "f2", Compatible: []string{"f1"}, Time: 5}), "state", "01" + "0a" + "026632" + "01026631"},
	}
	for _, c := range cases {
		if c.r.Key != c.key || hex.EncodeToString(c.r.Value[:len(c.r.Value)-4]) != c.value {
			t.Errorf("%s: %x, want %s: %s", c.r.Key, c.r.Value, c.key, c.value)
		}
	}
}

func sampleStore() StoreRecord {
	return StoreRecord{ID: "count", Kind: "kv", KeySchema: "string", ValueSchema: "int64", Changelog: true}
}

func TestControlFolds(t *testing.T) {
	var c ControlState
	if !c.Empty() {
		t.Error("the zero state is not empty")
	}
	apply := func(r ControlRecord) {
		t.Helper()
		if err := c.Apply(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	apply(SubRecord(sub("b", "b", "t")))
	apply(SubRecord(sub("a", "a")))
	apply(SubRecord(sub("x", "x")))
	apply(SubRecord(sub("a", "a c")))
	apply(ControlRecord{"sub/x", nil})
	apply(StoreRecordOf(sampleStore()))
	apply(StoreRecordOf(StoreRecord{ID: "gone"}))
	apply(ControlRecord{"store/gone", nil})
	apply(FormatRecord("progress", 2))
	apply(FormatRecord("progress", 1)) // a late writer of an older build
	apply(FormatRecord("gone", 1))
	apply(ControlRecord{"format/gone", nil})
	apply(StateRecordOf(StateRecord{Fingerprint: "f1", Time: 1}))
	apply(StateRecordOf(StateRecord{Fingerprint: "f2", Compatible: []string{"f1"}, Time: 2}))
	apply((&Lows{Instance: "i", Groups: []Low{{"a", 1}}}).Record())
	apply(ControlRecord{"savepoint/7", []byte("whatever")})
	apply(ControlRecord{"savepoint/8", []byte("whatever")})
	apply(ControlRecord{"savepoint/8", nil})
	want := ControlState{
		Subs:    map[string]SubTopology{"a": sub("a", "a c"), "b": sub("b", "b", "t")},
		Stores:  map[string]StoreRecord{"count": sampleStore()},
		Formats: map[string]int{"progress": 2},
		State:   &StateRecord{Fingerprint: "f2", Compatible: []string{"f1"}, Time: 2},
		Unknown: map[string][]byte{"savepoint/7": []byte("whatever")},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]SubTopology{sub("a", "a c"), sub("b", "b", "t")}, c.SubTopologies()); d != "" {
		t.Error(d)
	}
	apply(ControlRecord{"state", nil})
	if c.State != nil || c.Empty() {
		t.Errorf("state %v, empty %v", c.State, c.Empty())
	}
}

func TestControlRefusals(t *testing.T) {
	for _, r := range []ControlRecord{SubRecord(sub("a", "a b", "t")), StoreRecordOf(sampleStore()), FormatRecord("progress", 1), StateRecordOf(StateRecord{Fingerprint: "f"})} {
		for i := range r.Value {
			bad := append([]byte{}, r.Value...)
			bad[i] ^= 4
			var c ControlState
			if err := c.Apply(r.Key, bad); !errors.Is(err, ErrControl) || !c.Empty() {
				t.Errorf("%s, byte %d flipped: %v", r.Key, i, err)
			}
		}
		var c ControlState
		newer := append([]byte{}, r.Value[:len(r.Value)-4]...)
		newer[0] = 9
		if ve, ok := errors.AsType[*VersionError](c.Apply(r.Key, sealed(newer))); !ok || ve.Have != 9 {
			t.Errorf("%s, newer version: %v", r.Key, ve)
		}
		if err := c.Apply(r.Key, sealed(append(r.Value[:len(r.Value)-4:len(r.Value)-4], 0))); !errors.Is(err, ErrControl) {
			t.Errorf("%s, a byte too many: %v", r.Key, err)
		}
	}
}

func FuzzControl(f *testing.F) {
	for _, r := range []ControlRecord{SubRecord(sub("a", "a b", "t")), StoreRecordOf(sampleStore()), FormatRecord("progress", 1), StateRecordOf(StateRecord{Fingerprint: "f"})} {
		f.Add(r.Key, r.Value[:len(r.Value)-4])
	}
	f.Fuzz(func(t *testing.T, key string, body []byte) {
		var c ControlState
		if c.Apply(key, sealed(append([]byte{}, body...))) != nil {
			return
		}
		var again ControlRecord
		for _, s := range c.Subs {
			again = SubRecord(s)
		}
		for _, st := range c.Stores {
			again = StoreRecordOf(st)
		}
		for name, v := range c.Formats {
			again = FormatRecord(name, v)
		}
		if c.State != nil {
			again = StateRecordOf(*c.State)
		}
		if len(c.Unknown) == 0 && (again.Key != key || string(again.Value[:len(again.Value)-4]) != string(body)) {
			t.Fatalf("%q %x is written as %q %x", key, body, again.Key, again.Value)
		}
	})
}

func TestLows(t *testing.T) {
	l := Lows{Instance: "i1", Sent: 5, Groups: []Low{{"a", -3}, {"b", 1 << 40}}}
	r := l.Record()
	if r.Key != "lows/i1" || hex.EncodeToString(r.Value[:len(r.Value)-4]) != "01"+"0a"+"02"+"016105"+"0162808080808040" {
		t.Errorf("%s: %x", r.Key, r.Value)
	}
	got, ok, err := ParseLows(r.Key, r.Value)
	if d := cmp.Diff(l, got); d != "" || !ok || err != nil {
		t.Errorf("read back: %v %v %s", ok, err, d)
	}
	if got, ok, err := ParseLows("lows/i1", (&Lows{Instance: "i1"}).Record().Value); !ok || err != nil || got.Instance != "i1" || got.Groups != nil {
		t.Errorf("taken back: %+v %v %v", got, ok, err)
	}
	if _, ok, err := ParseLows("state", r.Value); ok || err != nil {
		t.Errorf("of another kind: %v %v", ok, err)
	}
	for i := range r.Value {
		bad := append([]byte{}, r.Value...)
		bad[i] ^= 4
		if _, ok, err := ParseLows(r.Key, bad); !ok || !errors.Is(err, ErrControl) {
			t.Errorf("byte %d flipped: %v %v", i, ok, err)
		}
	}
}

func FuzzLows(f *testing.F) {
	r := (&Lows{Instance: "i", Sent: 1, Groups: []Low{{"a", 2}}}).Record()
	f.Add(r.Key, r.Value[:len(r.Value)-4])
	f.Fuzz(func(t *testing.T, key string, body []byte) {
		l, ok, err := ParseLows(key, sealed(append([]byte{}, body...)))
		if !ok || err != nil || len(l.Groups) == 0 {
			return
		}
		if again := l.Record(); again.Key != key || string(again.Value[:len(again.Value)-4]) != string(body) {
			t.Fatalf("%q %x is written as %q %x", key, body, again.Key, again.Value)
		}
	})
}
