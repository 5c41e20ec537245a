package query_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/store"
)

// shelf is the rows of one store, in the order of their keys.
type shelf []struct{ key, row []byte }

func (s shelf) Get(dst []byte, _ int, key []byte) ([]byte, bool, error) {
	for _, r := range s {
		if bytes.Equal(r.key, key) {
			return append(dst, r.row...), true, nil
		}
	}
	return dst, false, nil
}

func (s shelf) Scan(_ int, lo, hi []byte) (store.Iterator, error) {
	it := &shelfIterator{at: -1}
	for _, r := range s {
		if bytes.Compare(r.key, lo) >= 0 && (hi == nil || bytes.Compare(r.key, hi) < 0) {
			it.rows = append(it.rows, r)
		}
	}
	return it, nil
}

func (s shelf) Group(_ int, at []byte) ([]byte, bool, error) {
	for _, r := range s {
		if bytes.Compare(r.key[:8], at[:8]) >= 0 {
			return r.key[:8], true, nil
		}
	}
	return nil, false, nil
}

type shelfIterator struct {
	rows shelf
	at   int
}

func (i *shelfIterator) Next() bool    { i.at++; return i.at < len(i.rows) }
func (i *shelfIterator) Key() []byte   { return i.rows[i.at].key }
func (i *shelfIterator) Value() []byte { return i.rows[i.at].row }
func (i *shelfIterator) Err() error    { return nil }
func (i *shelfIterator) Close() error  { return nil }

// put adds a row with a value.
func (s *shelf) put(key []byte, value string) {
	row := binary.BigEndian.AppendUint64(nil, 77)
	*s = append(*s, struct{ key, row []byte }{key, append(row, value...)})
}

func (s shelf) sorted() shelf {
	slices.SortFunc(s, func(a, b struct{ key, row []byte }) int { return bytes.Compare(a.key, b.key) })
	return slices.CompactFunc(s, func(a, b struct{ key, row []byte }) bool { return bytes.Equal(a.key, b.key) })
}

// readAll reads page by page, with limits that change.
func readAll(t *testing.T, rows shelf, s *query.Store, p query.Page, rng *rand.Rand) (out []query.Row) {
	t.Helper()
	for range 10_000 {
		p.Rows, p.Visit, p.Bytes = 1+rng.IntN(5), rng.IntN(8), int64(20+rng.IntN(200))
		got, next, err := query.NewView(query.Meta{}, rows, nil, nil).Read(t.Context(), s, p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got...)
		if next == nil {
			return out
		}
		p.After = next
	}
	t.Fatal("the pages come to no end")
	return nil
}

func show(rows []query.Row) (out []string) {
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%q[%d,%d)=%s", r.Key, r.Start, r.End, r.Value))
	}
	return out
}

// Whatever the pages, rows are those that the description of Page says, in its order.
func TestPagesTwin(t *testing.T) {
	keys := []string{"", "a", "aa", "a\x00", "a\x00\x01", "a\xff", "b", "b\x00", "\xff", "\xff\xff"}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var rows shelf
		type fact struct {
			key        string
			start, end int64
			value      string
			deleted    bool
			order      []byte
			validTo    int64
		}
		var facts []fact
		s := &query.Store{ID: "s", StartOf: func(end int64) int64 { return end - 10 }}
		kinds := []query.Kind{query.KeyValue, query.Window, query.Session, query.Versioned}
		s.Kind = kinds[seed%4]
		seen := map[string]bool{}
		for range rng.IntN(40) {
			f := fact{key: keys[rng.IntN(len(keys))], value: fmt.Sprint("v", rng.IntN(100))}
			var key []byte
			local := f.value
			switch s.Kind {
			case query.KeyValue:
				key = []byte(f.key)
			case query.Window:
				f.start = int64(rng.IntN(8)) * 10
				f.end = f.start + 10
				key = store.AppendWindowKey(nil, f.end, []byte(f.key))
			case query.Session:
				f.start = int64(rng.IntN(80))
				f.end = f.start + 1 + int64(rng.IntN(20))
				key = store.AppendSessionKey(nil, []byte(f.key), store.Span{Start: f.start, End: f.end})
			case query.Versioned:
				f.start = int64(rng.IntN(80))
				f.deleted = rng.IntN(4) == 0
				local = "\x01" + f.value
				if f.deleted {
					local = "\x00"
				}
				key = store.AppendVersionKey(nil, []byte(f.key), f.start)
			}
			if seen[string(key)] {
				continue
			}
			seen[string(key)] = true
			f.order = key
			facts = append(facts, f)
			rows.put(key, local)
		}
		rows = rows.sorted()
		slices.SortFunc(facts, func(a, b fact) int { return bytes.Compare(a.order, b.order) })
		for i := range facts { // versions come latest first: the one before replaced this one
			facts[i].validTo = math.MaxInt64
			if i > 0 && facts[i-1].key == facts[i].key {
				facts[i].validTo = facts[i-1].start
			}
		}
		p := query.Page{HasTime: s.Kind != query.KeyValue && rng.IntN(2) == 0}
		p.From, p.To = math.MinInt64, math.MaxInt64
		if p.HasTime {
			p.From = int64(rng.IntN(90)) - 5
			p.To = p.From + int64(rng.IntN(50))
		}
		switch rng.IntN(3) {
		case 0:
			p.Key = []byte(keys[rng.IntN(len(keys))])
		case 1:
			p.Range = query.Prefix([]byte(keys[rng.IntN(len(keys))]))
		}
		var want []query.Row
		shown := map[string]bool{}
		for _, f := range facts {
			if p.Key != nil && f.key != string(p.Key) || p.Key == nil && !p.Range.Contains([]byte(f.key)) {
				continue
			}
			in := true
			switch s.Kind {
			case query.Window:
				in = f.start >= p.From && f.start <= p.To
			case query.Session:
				in = f.start <= p.To && f.end > p.From
			case query.Versioned:
				in = f.start <= p.To && (f.validTo > p.From || f.validTo == math.MaxInt64)
				if p.Key == nil {
					in = in && !shown[f.key]
					shown[f.key] = shown[f.key] || f.start <= p.To
				}
				in = in && !f.deleted
			}
			if in {
				want = append(want, query.Row{Key: []byte(f.key), Start: f.start, End: f.end, Value: []byte(f.value)})
			}
		}
		got := readAll(t, rows, s, p, rng)
		if !slices.Equal(show(got), show(want)) {
			t.Fatalf("seed %d, %s, %+v:\n got %q\nwant %q", seed, s.Kind, p, show(got), show(want))
		}
	}
}

// Q-PREFIX-KEY: windows of one key are those of no other, be the key a prefix of it or not.
func TestQPrefixKey(t *testing.T) {
	var rows shelf
	for _, k := range []string{"a", "aa", "a\x00", "b"} {
		for start := int64(0); start <= 20; start += 10 {
			rows.put(store.AppendWindowKey(nil, start+10, []byte(k)), k)
		}
	}
	s := &query.Store{ID: "w", Kind: query.Window, StartOf: func(end int64) int64 { return end - 10 }}
	got := readAll(t, rows.sorted(), s, query.Page{Key: []byte("a"), HasTime: true, From: 0, To: 20}, rand.New(rand.NewPCG(1, 1)))
	if want := []string{`"a"[0,10)=a`, `"a"[10,20)=a`, `"a"[20,30)=a`}; !slices.Equal(show(got), want) {
		t.Errorf("got %q", show(got))
	}
}

// A row that exceeds the limit for an answer by itself is an error that says so; one that fits alone comes alone.
func TestPageBytes(t *testing.T) {
	var rows shelf
	rows.put([]byte("a"), "12345")
	rows.put([]byte("b"), "1234567")
	s := &query.Store{ID: "kv", Kind: query.KeyValue}
	v := query.NewView(query.Meta{}, rows, nil, nil)
	got, next, err := v.Read(t.Context(), s, query.Page{Rows: 10, Bytes: 8})
	if err != nil || len(got) != 1 || next == nil {
		t.Fatalf("%q, %q, %v", show(got), next, err)
	}
	got, next, err = v.Read(t.Context(), s, query.Page{Rows: 10, Bytes: 8, After: next})
	if err != nil || len(got) != 1 || next != nil {
		t.Fatalf("%q, %q, %v", show(got), next, err)
	}
	if _, _, err = v.Read(t.Context(), s, query.Page{Rows: 10, Bytes: 7}); !errors.Is(err, &query.Error{Reason: query.TooLarge}) {
		t.Errorf("a row of 8 bytes in 7: %v", err)
	}
}

// AsOf returns the version that was valid, and none where the key had no value.
func TestAsOf(t *testing.T) {
	var rows shelf
	for _, v := range []struct {
		at    int64
		value string
	}{{10, "\x01ten"}, {20, "\x00"}, {30, "\x01thirty"}} {
		rows.put(store.AppendVersionKey(nil, []byte("k"), v.at), v.value)
	}
	rows.put(store.AppendVersionKey(nil, []byte("k2"), 15), "\x01other")
	s := &query.Store{ID: "h", Kind: query.Versioned}
	v := query.NewView(query.Meta{}, rows.sorted(), nil, nil)
	for _, row := range []struct {
		at   int64
		want string
	}{{5, ""}, {10, "ten"}, {19, "ten"}, {20, ""}, {29, ""}, {30, "thirty"}, {math.MaxInt64, "thirty"}} {
		r, ok, err := v.AsOf(s, []byte("k"), row.at)
		if err != nil || string(r.Value) != row.want || ok != (row.want != "") {
			t.Errorf("at %d: %q, %v, %v", row.at, r.Value, ok, err)
		}
	}
	if r, ok, err := v.Get(s, []byte("k2")); err != nil || !ok || string(r.Value) != "other" {
		t.Errorf("the latest: %q, %v, %v", r.Value, ok, err)
	}
}

func TestPosition(t *testing.T) {
	p := query.Position(nil).Merge(query.Position{
		{Name: "orders", Partition: 3, Number: 1041}, {Name: "totals", Partition: 3, Commit: true, Number: 77},
		{Name: `odd,na/me@#\`, Partition: 0, Commit: true, Number: 1}, {Name: "orders", Partition: 3, Number: 5},
	})
	text := p.String()
	if want := `odd\,na\/me\@\#\\/0#1,orders/3@1041,totals/3#77`; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	again, err := query.ParsePosition(text)
	if err != nil || !slices.Equal(again, p) {
		t.Errorf("%v, %v", again, err)
	}
	if at, ok := again.Offset("orders", 3); !ok || at != 1041 {
		t.Errorf("offset %d, %v", at, ok)
	}
	if seq := again.Commit(query.Task{Sub: "totals", Partition: 3}); seq != 77 {
		t.Errorf("commit %d", seq)
	}
	if topics := again.Topics(); !slices.Equal(topics, []string{"orders"}) {
		t.Errorf("topics %v", topics)
	}
	for _, bad := range []string{",", "a", "a/", "a/1", "a/1@", "a/-1@2", "a/1@-2", "/1@2", "a/1@2,", "a/1@2,,b/1@2", "a@b/1@2", `a\`, "a/1@99999999999999999999", "a/4294967296@1", "a/1@2#3"} {
		if p, err := query.ParsePosition(bad); !errors.Is(err, &query.Error{Reason: query.TokenMalformed}) {
			t.Errorf("%q: %v, %v", bad, p, err)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add(`odd\,na\/me\@\#\\/0#1,orders/3@1041,totals/3#77`)
	f.Add("a/1@2,b/0#9")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := query.ParsePosition(text)
		if err != nil {
			return
		}
		again, err := query.ParsePosition(p.String())
		if err != nil || !slices.EqualFunc(again, p, func(a, b query.Point) bool { return cmp.Compare(a.String(), b.String()) == 0 }) {
			t.Errorf("%q is %v, whose text is %v, %v", text, p, again, err)
		}
	})
}
