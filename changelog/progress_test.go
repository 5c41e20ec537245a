package changelog

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sampleProgress() *Progress {
	return &Progress{
		Version: 1, Seq: 300, Writer: 0x0102030405060708, Time: 1700000000123, W: -5,
		Offsets:  []TopicOffset{{"in", 3, 1000}, {"app-x-repartition", 3, 0}},
		Ends:     []StoreEnd{{"count", 77}},
		TopicIDs: []TopicID{{"in", [16]byte{1, 2, 3, 15: 9}}},
		Rest:     []byte{0xaa},
	}
}

func TestProgressGolden(t *testing.T) {
	b, err := sampleProgress().Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "01" + "ac02" + "0102030405060708" + "f6a1abfef962" + "09" +
		"02" + "02696e" + "03" + "e807" + "116170702d782d7265706172746974696f6e" + "03" + "00" +
		"01" + "05636f756e74" + "4d" +
		"01" + "02696e" + "01020300000000000000000000000009" +
		"01aa" + "c1049c82"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoding changed:\n got %s\nwant %s", got, want)
	}
	back, err := DecodeProgress(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sampleProgress(), back); d != "" {
		t.Error(d)
	}
	if o, ok := back.Offset("in", 3); !ok || o != 1000 {
		t.Errorf("offset of in/3: %d %v", o, ok)
	}
	if _, ok := back.Offset("in", 4); ok {
		t.Error("in/4 has an offset")
	}
	if e, ok := back.End("count"); !ok || e != 77 {
		t.Errorf("end of count: %d %v", e, ok)
	}
	if id, ok := back.TopicID("in"); !ok || id[15] != 9 {
		t.Errorf("id of in: %v %v", id, ok)
	}
}

func TestProgressEncodingAppends(t *testing.T) {
	alone, _ := sampleProgress().Append(nil)
	behind, err := sampleProgress().Append([]byte("xyz"))
	if err != nil || string(behind) != "xyz"+string(alone) {
		t.Errorf("appended encoding differs: %x, %v", behind, err)
	}
}

func TestProgressRefusals(t *testing.T) {
	good, _ := sampleProgress().Append(nil)
	for i := range good {
		for _, bit := range []byte{1, 0x80} {
			bad := append([]byte{}, good...)
			bad[i] ^= bit
			if _, err := DecodeProgress(bad); !errors.Is(err, ErrProgress) {
				t.Fatalf("byte %d flipped: error %v, want ErrProgress", i, err)
			}
		}
		if _, err := DecodeProgress(good[:i]); !errors.Is(err, ErrProgress) {
			t.Fatalf("first %d bytes: error %v, want ErrProgress", i, err)
		}
	}
	newer := sealed(append([]byte{2}, good[1:len(good)-4]...))
	if ve, ok := errors.AsType[*VersionError](func() error { _, err := DecodeProgress(newer); return err }()); !ok || ve.Have != 2 {
		t.Errorf("newer version: %v", ve)
	}
	if _, err := DecodeProgress(sealed(append(append([]byte{}, good[:len(good)-4]...), 0))); !errors.Is(err, ErrProgress) {
		t.Errorf("a byte too many: %v", err)
	}
	for name, p := range map[string]*Progress{
		"version":            {Version: 2},
		"negative offset":    {Offsets: []TopicOffset{{"t", 0, -1}}},
		"negative partition": {Offsets: []TopicOffset{{"t", -1, 0}}},
		"negative end":       {Ends: []StoreEnd{{"s", -1}}},
	} {
		if _, err := p.Append(nil); err == nil {
			t.Errorf("%s: encoded", name)
		}
	}
}

func FuzzDecodeProgress(f *testing.F) {
	good, _ := sampleProgress().Append(nil)
	f.Add(good[:len(good)-4])
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := DecodeProgress(sealed(append([]byte{}, body...)))
		if err != nil {
			return
		}
		again, err := p.Append(nil)
		if err != nil || string(again[:len(again)-4]) != string(body) {
			t.Fatalf("%x decodes to %+v, which encodes to %x, %v", body, p, again, err)
		}
	})
}
