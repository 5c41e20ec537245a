package changelog

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetadataGolden(t *testing.T) {
	cases := []struct {
		m    Metadata
		text string
	}{
		{Metadata{Seq: 1, Writer: 35, W: NoWatermark}, "tm1 1 z - -"},
		{Metadata{Seq: 36, Writer: math.MaxUint64, W: 1700000000000, Ends: []int64{0, 10, 36}}, "tm1 10 3w5e11264sgsf loyw3v28 0,a,10"},
		{Metadata{W: -1, Ends: []int64{math.MaxInt64}}, "tm1 0 0 -1 1y2p0ij32e8e7"},
	}
	for _, c := range cases {
		text, err := c.m.Text()
		if err != nil || text != c.text {
			t.Errorf("%+v: text %q, %v, want %q", c.m, text, err, c.text)
		}
		back, ok, err := ParseMetadata(c.text)
		if err != nil || !ok || !cmp.Equal(back, c.m) {
			t.Errorf("%q: %+v %v %v", c.text, back, ok, err)
		}
	}
	if _, ok, err := ParseMetadata(""); ok || err != nil {
		t.Errorf("empty text: %v %v, want no metadata and no error", ok, err)
	}
}

func TestMetadataRefusals(t *testing.T) {
	for _, text := range []string{
		"x", "tm", "tm1", "tm1 1 z -", "tm1 1 z - - -", "tm1 1 z - 1,", "tm1 1 z - ,1", "tm1 1 z - -1", "tm1 01 z - -",
		"tm1 1 Z - -", "tm1 +1 z - -", "tm1 1 z  -", " tm1 1 z - -", "tm1 1 z - -\n", "tm1 1 3w5e11264sgsg - -", "TM1 1 z - -",
		"tm1 1 z -1y2p0ij32e8e8 -", "tm01 1 z - -", "{\"seq\":1}", strings.Repeat("t", 5000), "tm1 1 z - " + strings.Repeat("1,", 2000) + "1",
	} {
		if m, ok, err := ParseMetadata(text); !errors.Is(err, ErrMetadata) || ok {
			t.Errorf("%.40q: %+v %v %v, want ErrMetadata", text, m, ok, err)
		}
	}
	if _, _, err := ParseMetadata("tm2 whatever comes"); err == nil || errors.Is(err, ErrMetadata) {
		t.Errorf("newer version: %v, want a VersionError", err)
	}
}

func TestMetadataFitsTheBroker(t *testing.T) {
	m := Metadata{Seq: math.MaxUint64, Writer: math.MaxUint64, W: math.MinInt64 + 1, Ends: make([]int64, MaxMetadataEnds)}
	for i := range m.Ends {
		m.Ends[i] = math.MaxInt64
	}
	text, err := m.Text()
	if err != nil || len(text) > MaxMetadata {
		t.Errorf("%d characters, %v", len(text), err)
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			t.Fatalf("character %q", text[i])
		}
	}
	m.Ends = make([]int64, 4000)
	if _, err := m.Text(); err == nil {
		t.Error("text above the limit was written")
	}
	if _, err := (Metadata{Ends: []int64{-1}}).Text(); err == nil {
		t.Error("a negative end was written")
	}
}

func TestMetadataRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		m := Metadata{Seq: rnd.Uint64() >> rnd.IntN(64), Writer: rnd.Uint64(), W: int64(rnd.Uint64()) >> rnd.IntN(64)}
		for range rnd.IntN(5) {
			m.Ends = append(m.Ends, rnd.Int64()>>rnd.IntN(63))
		}
		text, err := m.Text()
		back, ok, perr := ParseMetadata(text)
		if err != nil || perr != nil || !ok || !cmp.Equal(m, back) {
			t.Fatalf("seed %d: %+v -> %q -> %+v, %v %v", seed, m, text, back, err, perr)
		}
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add("tm1 10 3w5e11264sgsf loyw3v28 0,a,10")
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok, err := ParseMetadata(text); err == nil && ok && m.String() != text {
			t.Fatalf("%q parses to %+v, which is %q", text, m, m)
		}
	})
}
