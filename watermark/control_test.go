package watermark

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

var goldenControls = []struct {
	name string
	c    Control
	hex  string
}{
	{"empty", Control{Kind: KindWatermark}, "" +
		"54010100" + "00" + "00000000" + "00" + "00" + "00" + "CRC"},
	{"three tasks", Control{
		Kind: KindWatermark, Flags: FlagIgnorable, Epoch: 3, Writer: 0xdeadbeef, Tasks: 300, Generation: 129,
		Entries: []Entry{{0, Active, 1000, 7}, {1, Idle, 990, 200}, {299, Done, Finished, 1}},
	}, "" +
		"54010101" + "03" + "deadbeef" + "ac02" + "8101" + "03" +
		"00" + "00" + "d00f" + "07" +
		"01" + "01" + "13" + "c801" +
		"ab02" + "02" + "aef0ffffffffffffff01" + "01" + "CRC"},
	{"unknown and negative", Control{
		Kind: KindWatermark, Writer: 1, Tasks: 2, Entries: []Entry{{1, Active, Unknown, 1}, {0, Active, -5, 2}},
	}, "" +
		"54010100" + "00" + "00000001" + "02" + "00" + "02" +
		"01" + "00" + "ffffffffffffffffff01" + "01" +
		"00" + "00" + "f6ffffffffffffffff01" + "02" + "CRC"},
}

// sealed appends the checksum to a body.
func sealed(body []byte) []byte {
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func golden(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s[:len(s)-len("CRC")])
	if err != nil {
		t.Fatal(err)
	}
	return sealed(b)
}

func same(a, b *Control) bool {
	x, y := *a, *b
	if len(x.Entries) == 0 && len(y.Entries) == 0 {
		x.Entries, y.Entries = nil, nil
	}
	return reflect.DeepEqual(x, y)
}

func TestControlGolden(t *testing.T) {
	for _, g := range goldenControls {
		want := golden(t, g.hex)
		if got := g.c.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Errorf("%s:\n%x, want\n%x", g.name, got[6:], want)
		}
		if c, err := ParseControl(want); err != nil || !same(c, &g.c) || !c.Known() {
			t.Errorf("%s: %+v, %v", g.name, c, err)
		}
	}
	b := goldenControls[1].c.Append(nil)
	if got, want := hex.EncodeToString(b[len(b)-4:]), "5bdac31c"; got != want {
		t.Errorf("checksum %s, want %s", got, want)
	}
	if ControlHeader != "tm-c" || ControlValue != "\x01" {
		t.Error("the header has changed")
	}
}

func TestWriterID(t *testing.T) {
	for sub, want := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} {
		if got := WriterID(sub); got != want {
			t.Errorf("%q: %08x, want %08x", sub, got, want)
		}
	}
}

// No change of a byte and no cut goes unnoticed.
func TestControlDamage(t *testing.T) {
	b := goldenControls[1].c.Append(nil)
	for n := range b {
		if _, err := ParseControl(b[:n]); !errors.Is(err, ErrControl) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
		for bit := range 8 {
			d := bytes.Clone(b)
			d[n] ^= 1 << bit
			if _, err := ParseControl(d); !errors.Is(err, ErrControl) {
				t.Errorf("byte %d, bit %d: %v", n, bit, err)
			}
		}
	}
	for name, body := range map[string][]byte{
		"a byte too many":       append(b[:len(b)-4:len(b)-4], 0),
		"an entry too few":      b[:len(b)-5],
		"no entries":            {controlMagic, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0},
		"task beyond tasks":     {controlMagic, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0},
		"no such state":         {controlMagic, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 3, 0, 0},
		"too many tasks":        {controlMagic, 1, 1, 0, 0, 0, 0, 0, 1, 0x81, 0x80, 0x40, 0, 0},
		"more than it holds":    {controlMagic, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0xff, 0xff, 0x03},
		"a long form":           {controlMagic, 1, 1, 0, 0x80, 0, 0, 0, 0, 1, 1, 0, 0},
		"head cut in a uvarint": {controlMagic, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0x80},
	} {
		if c, err := ParseControl(sealed(bytes.Clone(body))); !errors.Is(err, ErrControl) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// What a build does not know it skips if it may, and refuses otherwise.
func TestControlVersions(t *testing.T) {
	for _, c := range []struct {
		version, kind, flags byte
		want                 string // of the error, "" to skip
	}{
		{1, 2, 0, "watermark: control record kind 2, this build understands 1 to 1"},
		{1, 0, 2, "watermark: control record kind 0, this build understands 1 to 1"},
		{2, 1, 0, "watermark: control record 2, this build understands 1 to 1"},
		{1, 3, FlagIgnorable, ""},
		{2, 1, FlagIgnorable | 4, ""},
		{9, 9, FlagIgnorable, ""},
	} {
		b := sealed([]byte{controlMagic, c.version, c.kind, c.flags, 'w', 'h', 'a', 't', 'e', 'v', 'e', 'r'})
		got, err := ParseControl(b)
		var v *VersionError
		if c.want != "" {
			if got != nil || err == nil || err.Error() != c.want || !errors.As(err, &v) {
				t.Errorf("%+v: %+v, %v", c, got, err)
			}
			continue
		}
		if err != nil || got.Known() || !got.Ignorable() || byte(got.Kind) != c.kind || got.Flags != c.flags {
			t.Errorf("%+v: %+v, %v", c, got, err)
			continue
		}
		vec := NewVector(1)
		if err := vec.Apply(got); err != nil {
			t.Errorf("%+v: applied: %v", c, err)
		}
	}
}

func randomW(rng *rand.Rand) int64 {
	switch rng.IntN(6) {
	case 0:
		return edges[rng.IntN(len(edges))]
	case 1:
		return int64(rng.Uint64())
	}
	return 1_700_000_000_000 + rng.Int64N(100_000)
}

func TestControlRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range 2000 {
		c := Control{
			Kind: KindWatermark, Flags: byte(rng.IntN(256)), Epoch: rng.Uint64() >> rng.IntN(64), Writer: rng.Uint32(),
			Tasks: 1 + rng.Uint32N(1<<rng.IntN(20)), Generation: rng.Uint64() >> rng.IntN(64),
		}
		for range rng.IntN(20) {
			c.Entries = append(c.Entries, Entry{rng.Uint32N(c.Tasks), State(rng.IntN(3)), randomW(rng), rng.Uint64() >> rng.IntN(64)})
		}
		b := c.Append(nil)
		got, err := ParseControl(b)
		if err != nil || !same(got, &c) {
			t.Fatalf("seed %d, round %d: %+v became %+v, %v", seed, n, c, got, err)
		}
		// Arbitrary bodies behind a right checksum: parsed in their one form, or refused.
		body := b[: len(b)-4 : len(b)-4]
		for range 1 + rng.IntN(3) {
			body[4+rng.IntN(len(body)-4)] = byte(rng.IntN(256))
		}
		wild := sealed(body[:4+rng.IntN(len(body)-3)])
		switch got, err := ParseControl(wild); {
		case err != nil && !errors.Is(err, ErrControl):
			t.Fatalf("seed %d, round %d: %v", seed, n, err)
		case err == nil && !bytes.Equal(got.Append(nil), wild):
			t.Fatalf("seed %d, round %d: %x parsed as %+v", seed, n, wild, got)
		}
	}
}

func FuzzParseControl(f *testing.F) {
	for _, g := range goldenControls {
		b := g.c.Append(nil)
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := sealed(bytes.Clone(body))
		c, err := ParseControl(b)
		var v *VersionError
		switch {
		case err != nil:
			if !errors.Is(err, ErrControl) && !errors.As(err, &v) {
				t.Fatal(err)
			}
		case !c.Known():
			if !c.Ignorable() {
				t.Fatal("skipped what is not ignorable")
			}
		case !bytes.Equal(c.Append(nil), b):
			t.Fatalf("%x is another form of %x", b, c.Append(nil))
		}
	})
}

func TestControlSize(t *testing.T) {
	c := Control{Kind: KindWatermark, Epoch: 1, Writer: math.MaxUint32, Tasks: 64, Generation: 12}
	for task := range uint32(8) {
		c.Entries = append(c.Entries, Entry{task, Active, 1_700_000_000_000 + int64(task)*50, 1_000_000})
	}
	if n := len(c.Append(nil)); n > 90 {
		t.Errorf("8 entries take %d bytes", n)
	}
}
