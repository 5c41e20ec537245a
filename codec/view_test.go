package codec_test

import (
	"errors"
	"testing"

	"github.com/tidemark/tidemark/codec"
)

func TestViewOf(t *testing.T) {
	for _, schema := range []string{"", "proto:a.B", "avro:00ff", "int", "version 2 of proto:a.B", "version 0 of int64", "ids string in buckets"} {
		if _, ok := codec.ViewOf(schema); ok {
			t.Errorf("%q is said to be known", schema)
		}
	}
	plain := codec.Int64()
	c := codec.Versioned(plain, 2, nil)
	view, ok := codec.ViewOf(c.Schema())
	if !ok {
		t.Fatalf("%s is not known", c.Schema())
	}
	now, err := c.Append(nil, 7)
	if err != nil {
		t.Fatal(err)
	}
	before, err := plain.Append(nil, 8)
	if err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string][]byte{"7": now, "8": before} {
		if j, err := view(nil, b); err != nil || string(j) != want {
			t.Errorf("%s %v, want %s", j, err, want)
		}
	}
	if _, err := view(nil, []byte("abc")); !errors.Is(err, codec.ErrMalformed) {
		t.Error(err)
	}
	view, _ = codec.ViewOf("json:{a:int}")
	if _, err := view(nil, []byte("{")); !errors.Is(err, codec.ErrMalformed) {
		t.Error(err)
	}
}
