package codec_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tidemark/tidemark/codec"
)

type routeKey struct {
	From string `json:"from"`
	To   string `json:"to"`
	N    int64  `json:"n"`
}

type city string

func erased[T any](t *testing.T) codec.Erased {
	t.Helper()
	c, err := codec.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return codec.Erase(c)
}

func encoded[T any](t *testing.T, v T) []byte {
	t.Helper()
	c, err := codec.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestErasedParse(t *testing.T) {
	noon := time.Date(2013, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name string
		e    codec.Erased
		json string // "" where it is the same as the text
		text string
		want []byte // nil: malformed
	}{
		{"string", erased[string](t), `"a\"b"`, `a"b`, []byte(`a"b`)},
		{"empty string", erased[string](t), `""`, ``, []byte{}},
		{"declared string", erased[city](t), `"Oslo"`, "Oslo", []byte("Oslo")},
		{"int64", erased[int64](t), "", "9007199254740993", encoded(t, int64(9007199254740993))},
		{"negative", erased[int32](t), "", "-7", encoded(t, int32(-7))},
		{"int64 with a fraction", erased[int64](t), "", "1.5", nil},
		{"int32 too large", erased[int32](t), "", "4294967296", nil},
		{"words for a number", erased[int64](t), `"x"`, "x", nil},
		{"bool", erased[bool](t), "", "true", encoded(t, true)},
		{"bytes", erased[[]byte](t), `"AP8="`, "AP8=", []byte{0, 255}},
		{"bytes for addresses", erased[[]byte](t), `"+/8="`, "-_8", []byte{0xfb, 0xff}},
		{"bytes that are none", erased[[]byte](t), `"*"`, "*", nil},
		{"struct", erased[routeKey](t), "", `{"n":3,"from":"A","to":"B"}`, encoded(t, routeKey{"A", "B", 3})},
		{"struct with an unknown member", erased[routeKey](t), "", `{"form":"A"}`, nil},
		{"time", erased[time.Time](t), `"2013-01-01T12:00:00Z"`, "2013-01-01T12:00:00Z", encoded(t, noon)},
		{"message", erased[*wrapperspb.StringValue](t), `"hi"`, `"hi"`, encoded(t, wrapperspb.String("hi"))},
		{"more than one value", erased[int64](t), "", "1 2", nil},
		{"nothing for a number", erased[int64](t), "", "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			text, js := row.text, row.json
			if js == "" {
				js = text
			}
			check := func(how string, got []byte, err error) {
				t.Helper()
				switch {
				case row.want == nil && !errors.Is(err, codec.ErrMalformed):
					t.Errorf("%s: %x, %v, want an error", how, got, err)
				case row.want != nil && (err != nil || !bytes.Equal(got, append([]byte("pre"), row.want...))):
					t.Errorf("%s: %x, %v, want %x", how, got, err, row.want)
				}
			}
			got, err := row.e.Parse([]byte("pre"), []byte(js))
			check("Parse", got, err)
			got, err = row.e.ParseText([]byte("pre"), text)
			check("ParseText", got, err)
			if row.want != nil {
				shown, err := row.e.JSON(nil, row.want)
				if err != nil {
					t.Fatal(err)
				}
				again, err := row.e.Parse(nil, shown)
				if err != nil || !bytes.Equal(again, row.want) {
					t.Errorf("what JSON shows, %s, is read as %x, %v", shown, again, err)
				}
			}
		})
	}
}
