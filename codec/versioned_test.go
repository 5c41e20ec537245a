package codec_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

// counter reads big-endian int64 as version 0 and decimal text as version 1; it writes JSON as version 2.
func counter(t *testing.T, versions ...int) codec.Codec[map[string]int64] {
	t.Helper()
	inner, err := codec.JSON[map[string]int64]()
	if err != nil {
		t.Fatal(err)
	}
	older := map[int]codec.Older[map[string]int64]{}
	for _, v := range versions {
		older[v] = codec.Older[map[string]int64]{
			Decode: func(b []byte) (map[string]int64, error) { return map[string]int64{"n": int64(len(b))}, nil },
			JSON:   func(dst, b []byte) ([]byte, error) { return append(dst, `"old"`...), nil },
		}
	}
	return codec.Versioned(inner, 2, older)
}

func TestVersioned(t *testing.T) {
	c := counter(t, 0, 1)
	b, err := c.Append([]byte("x"), map[string]int64{"n": 7})
	if want := "78ff027b226e223a377d6e47a324"; err != nil || hex.EncodeToString(b) != want {
		t.Fatalf("%x, %v, want %s", b, err, want)
	}
	b = b[1:]
	if v, err := c.Decode(b); err != nil || v["n"] != 7 {
		t.Errorf("%v, %v", v, err)
	}
	if j, err := c.JSON(nil, b); err != nil || string(j) != `{"n":7}` {
		t.Errorf("%s, %v", j, err)
	}
	if got, want := c.Schema(), "version 2 of json:map[string]int"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Whatever is no envelope is of version 0: too short, another beginning, a checksum that does not fit.
	damaged := bytes.Clone(b)
	damaged[3] ^= 1
	for _, old := range [][]byte{{}, {0xff}, {0, 0, 0, 0, 0, 0, 0, 7}, bytes.Repeat([]byte{0xff}, 8), damaged} {
		if v, err := c.Decode(old); err != nil || v["n"] != int64(len(old)) {
			t.Errorf("%x: %v, %v", old, v, err)
		}
		if j, err := c.JSON(nil, old); err != nil || string(j) != `"old"` {
			t.Errorf("%x: %s, %v", old, j, err)
		}
	}
}

func TestVersionedRefuses(t *testing.T) {
	newer, err := codec.Versioned(codec.Int64(), 3, nil).Append(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		bytes []byte
		have  int
	}{"newer": {newer, 3}, "without migration": {[]byte("{}"), 0}} {
		_, err := counter(t, 1).Decode(tt.bytes)
		_, jerr := counter(t, 1).JSON(nil, tt.bytes)
		for _, err := range []error{err, jerr} {
			if ve, ok := errors.AsType[*codec.VersionError](err); !ok || ve.Have != tt.have || ve.Want != 2 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestVersionedPassesOnWhatItsCodecCan(t *testing.T) {
	if _, ok := codec.Versioned(codec.String(), 1, nil).(codec.Nullable[string]); ok {
		t.Error("a string cannot be null")
	}
	c := codec.Versioned(codec.Bytes(), 1, nil)
	n, ok := c.(codec.Nullable[[]byte])
	if !ok || !n.IsNull(nil) || n.IsNull([]byte{}) {
		t.Error("null bytes")
	}
	if _, err := c.Append(nil, nil); !errors.Is(err, codec.ErrNull) {
		t.Errorf("null is encoded: %v", err)
	}
	if a, ok := c.(codec.Aliasing); !ok || !a.Aliases() {
		t.Error("bytes share memory")
	}
	if a := codec.Versioned(codec.String(), 1, nil).(codec.Aliasing); a.Aliases() {
		t.Error("strings do not")
	}
}
