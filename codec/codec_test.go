package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

type (
	userID  string
	cents   int64
	blob    []byte
	ratio   float64
	textual int
	order   struct {
		ID    string         `json:"id"`
		N     int32          `json:"n"`
		Tags  map[string]int `json:"tags,omitempty"`
		Took  time.Duration
		Inner *order `json:"inner,omitempty"`
		_     int
	}
	base   struct{ A int }
	nested struct {
		base
		*Mutual
		B []base `json:"b"`
		C any
		D int `json:"-"`
	}
	Mutual  struct{ *Mutual2 }
	Mutual2 struct {
		*Mutual
		E bool
	}
	hidden struct{ _, _ int }
)

func (t textual) MarshalText() ([]byte, error) { return []byte{'t', byte('0' + t)}, nil }
func (t *textual) UnmarshalText(b []byte) error {
	*t = textual(b[1] - '0')
	return nil
}

// check encodes v with T's default codec and compares bytes, JSON view, schema, and the value read back.
func check[T any](t *testing.T, v T, wantHex, wantJSON, wantSchema string) {
	t.Helper()
	c, err := For[T]()
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	b, err := c.Append([]byte("prefix"), v)
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	rest, ok := bytes.CutPrefix(b, []byte("prefix"))
	if !ok {
		t.Errorf("%T: Append lost what was there: %q", v, b)
	}
	if got := hex.EncodeToString(rest); got != wantHex {
		t.Errorf("%T: encoded %s (%q), want %s", v, got, rest, wantHex)
	}
	got, err := c.Decode(rest)
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	if diff := cmp.Diff(v, got, cmp.AllowUnexported(order{}), cmp.Comparer(proto.Equal)); diff != "" {
		t.Errorf("%T: round trip: %s", v, diff)
	}
	j, err := c.JSON([]byte("x"), rest)
	if err != nil || string(j) != "x"+wantJSON {
		t.Errorf("%T: JSON %s %v, want %s", v, j, err, wantJSON)
	}
	if c.Schema() != wantSchema {
		t.Errorf("%T: schema %s, want %s", v, c.Schema(), wantSchema)
	}
	// Whoever has the schema alone sees the same.
	view, known := ViewOf(wantSchema)
	if known == strings.HasPrefix(wantSchema, "proto:") {
		t.Errorf("%T: view of %s: %v", v, wantSchema, known)
	}
	if known {
		if j, err := view([]byte("x"), rest); err != nil || string(j) != "x"+wantJSON {
			t.Errorf("%T: view %s %v, want %s", v, j, err, wantJSON)
		}
	}
}

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

// The bytes are Kafka's serializers': they must not change.
func TestForBytes(t *testing.T) {
	check(t, "käse", hexOf("käse"), `"käse"`, "string")
	check(t, "", "", `""`, "string")
	check(t, userID("u1"), hexOf("u1"), `"u1"`, "string")
	check(t, []byte{0, 255}, "00ff", `"AP8="`, "bytes")
	check(t, []byte{}, "", `""`, "bytes")
	check(t, blob{7}, "07", `"Bw=="`, "bytes")
	check(t, int64(-2), "fffffffffffffffe", "-2", "int64")
	check(t, int(math.MaxInt64), "7fffffffffffffff", "9223372036854775807", "int64")
	check(t, cents(258), "0000000000000102", "258", "int64")
	check(t, time.Second, "000000003b9aca00", "1000000000", "int64")
	check(t, uint64(math.MaxUint64), "ffffffffffffffff", "18446744073709551615", "uint64")
	check(t, uint(3), "0000000000000003", "3", "uint64")
	check(t, int32(math.MinInt32), "80000000", "-2147483648", "int32")
	check(t, uint32(math.MaxUint32), "ffffffff", "4294967295", "uint32")
	check(t, int16(-1), "ffff", "-1", "int16")
	check(t, uint16(65535), "ffff", "65535", "uint16")
	check(t, int8(-1), "ff", "-1", "int8")
	check(t, uint8(255), "ff", "255", "uint8")
	check(t, 1.5, "3ff8000000000000", "1.5", "float64")
	check(t, ratio(math.Inf(1)), "7ff0000000000000", `"+Inf"`, "float64")
	check(t, float32(-0.5), "bf000000", "-0.5", "float32")
	check(t, true, "01", "true", "bool")
	check(t, false, "00", "false", "bool")
	check(t, textual(4), hexOf(`"t4"`), `"t4"`, "json:self:codec.textual")
	check(t, []string{"a"}, hexOf(`["a"]`), `["a"]`, "json:[string]")
	check(t, order{ID: "a", N: 2, Tags: map[string]int{"z": 1, "b": 2}, Took: 3, Inner: &order{}},
		hexOf(`{"id":"a","n":2,"tags":{"b":2,"z":1},"Took":3,"inner":{"id":"","n":0,"Took":0}}`),
		`{"id":"a","n":2,"tags":{"b":2,"z":1},"Took":3,"inner":{"id":"","n":0,"Took":0}}`,
		"json:{Took:int,id:string,inner:^0,n:int,tags:map[string]int}")
	check(t, &order{ID: "p"}, hexOf(`{"id":"p","n":0,"Took":0}`), `{"id":"p","n":0,"Took":0}`,
		"json:{Took:int,id:string,inner:^0,n:int,tags:map[string]int}")
	check(t, durationpb.New(1500*time.Millisecond), "08011080cab5ee01", `"1.500s"`, "proto:google.protobuf.Duration")
	check(t, struct{}{}, hexOf("{}"), "{}", "json:{}")
	check[any](t, map[string]any{"a": "b"}, hexOf(`{"a":"b"}`), `{"a":"b"}`, "json:any")
}

func TestSchemaOfNested(t *testing.T) {
	c, err := For[nested]()
	if err != nil {
		t.Fatal(err)
	}
	if want := "json:{A:int,C:any,E:bool,Mutual:{E:bool,Mutual:^1},b:[{A:int}]}"; c.Schema() != want {
		t.Errorf("schema %s, want %s", c.Schema(), want)
	}
}

// A schema names what old bytes need, so widening an integer or moving a field keeps it.
func TestSchemaIgnoresWidthAndOrder(t *testing.T) {
	a, err1 := For[struct {
		X int32
		Y string
	}]()
	b, err2 := For[struct {
		Y string
		X int64
	}]()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if a.Schema() != b.Schema() {
		t.Errorf("%s differs from %s", a.Schema(), b.Schema())
	}
}

func TestForUnsupported(t *testing.T) {
	for name, err := range map[string]error{
		"func":      errOf(For[func()]()),
		"chan":      errOf(For[chan int]()),
		"complex":   errOf(For[complex128]()),
		"interface": errOf(For[error]()),
		"inside":    errOf(For[struct{ F []func() }]()),
		"hidden":    errOf(For[hidden]()),
	} {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func errOf[T any](_ Codec[T], err error) error { return err }

func TestMalformed(t *testing.T) {
	for name, err := range map[string]error{
		"int64":    decodeErr(For[int64]())("short"),
		"int32":    decodeErr(For[int32]())("long--"),
		"int16":    decodeErr(For[int16]())(""),
		"int8":     decodeErr(For[int8]())("xx"),
		"float64":  decodeErr(For[float64]())("1"),
		"float32":  decodeErr(For[float32]())("1"),
		"bool":     decodeErr(For[bool]())("\x02"),
		"bool len": decodeErr(For[bool]())(""),
		"json":     decodeErr(For[order]())("{"),
		"proto":    decodeErr(For[*durationpb.Duration]())("\xff"),
		"avro":     decodeErr(Avro[int64](`"long"`))("\x02\x02"),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func decodeErr[T any](c Codec[T], err error) func(string) error {
	return func(s string) error {
		if err != nil {
			return err
		}
		if _, jsonErr := c.JSON(nil, []byte(s)); jsonErr == nil && c.Schema()[0] != 'a' {
			return errors.New("the JSON view accepts it")
		}
		_, err := c.Decode([]byte(s))
		return err
	}
}

// A-EMPTY-KEY: the empty value is a value, nil is null.
func TestAEmptyKey(t *testing.T) {
	checkNull(t, []byte{})
	checkNull(t, blob{})
	checkNull(t, &order{})
	checkNull(t, &durationpb.Duration{})
	c := Bytes()
	if v, err := c.Decode(nil); err != nil || v == nil {
		t.Errorf("an empty encoding decoded to %v, %v", v, err)
	}
	for _, c := range []any{String(), Int64(), must(For[order]())} {
		switch c.(type) {
		case Nullable[string], Nullable[int64], Nullable[order]:
			t.Errorf("%T claims to know null", c)
		}
	}
}

func must[T any](c Codec[T], err error) Codec[T] {
	if err != nil {
		panic(err)
	}
	return c
}

func checkNull[T any](t *testing.T, present T) {
	t.Helper()
	c := must(For[T]())
	n, ok := c.(Nullable[T])
	if !ok {
		t.Fatalf("%T does not know null", c)
	}
	if !n.IsNull(n.Null()) || n.IsNull(present) {
		t.Errorf("%T: null %v, present %v", c, n.IsNull(n.Null()), n.IsNull(present))
	}
	if _, err := c.Append(nil, n.Null()); !errors.Is(err, ErrNull) {
		t.Errorf("%T: encoding null: %v", c, err)
	}
}

func TestAliases(t *testing.T) {
	in := []byte("abc")
	for _, c := range []Codec[[]byte]{Bytes()} {
		v, _ := c.Decode(in)
		if a, ok := c.(Aliasing); !ok || !a.Aliases() || &v[0] != &in[0] {
			t.Errorf("%T copies", c)
		}
	}
	if a, ok := must(For[blob]()).(Aliasing); !ok || !a.Aliases() {
		t.Error("a type declared from []byte does not say that it aliases")
	}
	for _, c := range []any{String(), must(For[cents]()), must(For[userID]()), Float64(), Bool()} {
		if a, ok := c.(Aliasing); !ok || a.Aliases() {
			t.Errorf("%T claims to alias", c)
		}
	}
	v, _ := String().Decode(in)
	in[0] = 'x'
	if v != "abc" {
		t.Error("a string aliases its input")
	}
}

func TestStringView(t *testing.T) {
	got, err := String().JSON(nil, []byte("a\xff\"\n"))
	if want := `"a` + "\ufffd" + `\"\n"`; err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
}

func TestAvro(t *testing.T) {
	type point struct {
		X int64  `avro:"x"`
		S string `avro:"s"`
	}
	c, err := Avro[point](`{"type":"record","name":"p","fields":[{"name":"x","type":"long"},{"name":"s","type":"string"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Append([]byte("-"), point{3, "hi"})
	if err != nil || string(b) != "-\x06\x04hi" {
		t.Fatalf("%q %v", b, err)
	}
	v, err := c.Decode(b[1:])
	if err != nil || v != (point{3, "hi"}) {
		t.Errorf("%v %v", v, err)
	}
	if j, err := c.JSON(nil, b[1:]); err != nil || len(j) == 0 {
		t.Errorf("%s %v", j, err)
	}
	if _, err := Avro[point]("nonsense"); err == nil {
		t.Error("accepted nonsense")
	}
}

func TestKeySafe(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		safe bool
	}{
		"string":  {KeySafe[string](), true},
		"struct":  {KeySafe[struct{ A, B int }](), true},
		"time":    {KeySafe[time.Time](), true},
		"pointer": {KeySafe[*struct{ A []byte }](), true},
		"message": {KeySafe[*durationpb.Duration](), true},
		"float":   {KeySafe[float64](), false},
		"map":     {KeySafe[map[string]int](), false},
		"deep":    {KeySafe[order](), false},
		"array":   {KeySafe[[2]float32](), false},
		"any":     {KeySafe[any](), false},
		"pb map":  {KeySafe[*structpb.Struct](), false},
		"pb deep": {KeySafe[*structpb.ListValue](), false},
	} {
		if got := c.err == nil; got != c.safe || !got && !errors.Is(c.err, ErrUnsupported) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 64)
	for name, f := range map[string]func(){
		"int64":  func() { _, _ = must(For[int64]()).Append(dst, 1) },
		"string": func() { _, _ = String().Append(dst, "abc") },
	} {
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkJSONAppend(b *testing.B) {
	c := must(For[order]())
	dst := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Append(dst, order{ID: "order-1", N: 2, Took: 5}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInt64Append(b *testing.B) {
	c := must(For[int64]())
	dst := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Append(dst, 1)
	}
}
