package client

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark/tidemark/query"
)

// keysOf returns the keys of rows, and the error behind them.
func keysOf(rows iter.Seq2[Row[string, string], error]) (keys []string, err error) {
	for row, e := range rows {
		if err = e; err == nil {
			keys = append(keys, row.Key)
		}
	}
	return keys, err
}

// fill puts n keys, and returns them in the order of a scan.
func fill(a *app, n int) []string {
	var by [partitions][]string
	for i := range n {
		k := fmt.Sprintf("k%03d", i)
		p, _ := a.put(k, "v"+k)
		by[p] = append(by[p], k)
	}
	return slices.Concat(by[:]...)
}

func TestScanFetchesPagesAsTheyAreTaken(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		want := fill(a, 40)
		got, err := keysOf(r.Scan(t.Context(), PageRows(7)))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		if n := len(strings.Fields(a.asked())); n != 6 {
			t.Errorf("%d pages, want 6", n)
		}
		n := 0
		for row, err := range r.Scan(t.Context(), PageRows(7)) {
			if err != nil || row.Value != "v"+row.Key || row.Meta == nil || row.Meta.Task.Partition != row.Partition {
				t.Fatalf("row %+v, %v", row, err)
			}
			if n++; n == 8 {
				break
			}
		}
		wantAsked(t, a, "scan0 scan0")
		for _, limit := range []int{1, 6, 7, 8, 39, 40, 41} {
			got, err := keysOf(r.Scan(t.Context(), PageRows(7), Limit(limit)))
			if err != nil || !slices.Equal(got, want[:min(limit, 40)]) {
				t.Errorf("limit %d: got %v, %v", limit, got, err)
			}
		}
	})
}

// A page token outlives a move and the instance that made it.
func TestScanGoesOnElsewhere(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		want := fill(a, 40)
		var got []string
		for row, err := range r.Scan(t.Context(), PageRows(9)) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, row.Key); len(got) == 10 {
				a.stop(0)
				a.move(0, 1)
				a.move(3, 2)
				a.publish()
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestRanges(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		all := fill(a, 40)
		keep := func(ok func(string) bool) []string {
			return slices.DeleteFunc(slices.Clone(all), func(k string) bool { return !ok(k) })
		}
		got, err := keysOf(r.Prefix(t.Context(), "k01"))
		if want := keep(func(k string) bool { return strings.HasPrefix(k, "k01") }); err != nil || !slices.Equal(got, want) {
			t.Errorf("prefix: got %v, %v, want %v", got, err, want)
		}
		got, err = keysOf(r.Range(t.Context(), "k005", "k012"))
		if want := keep(func(k string) bool { return k >= "k005" && k < "k012" }); err != nil || !slices.Equal(got, want) {
			t.Errorf("range: got %v, %v, want %v", got, err, want)
		}
		n, err := Store[int64, string](r.c, "counts", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range n.Prefix(t.Context(), 1) {
			if !is(err, query.KeyMalformed) {
				t.Errorf("prefix of a number: %v", err)
			}
		}
	})
}

func TestScanError(t *testing.T) {
	bubble(t, 1, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		fill(a, 20)
		n := 0
		a.instances[0].fail = func(method string) error {
			if method == "scan" {
				n++
			}
			if n == 2 {
				return reply(query.TooLarge, codes.ResourceExhausted)
			}
			return nil
		}
		got, err := keysOf(r.Scan(t.Context(), PageRows(5)))
		if len(got) != 5 || !is(err, query.TooLarge) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestMultiGet(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		all := fill(a, 20)
		keys := []string{all[19], "nowhere", all[0], all[0], all[7], all[11]}
		check := func() {
			t.Helper()
			found, err := r.MultiGet(t.Context(), keys)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range found {
				want := keys[i] != "nowhere"
				if f.Key != keys[i] || f.Found != want || f.Missing || f.Partition != partitionOf(f.Key) || want && f.Value != "v"+f.Key || f.Meta == nil {
					t.Errorf("%s: %+v", keys[i], f)
				}
			}
		}
		check()
		asked := strings.Fields(a.asked())
		if slices.Sort(asked); len(asked) != 2 || !strings.HasSuffix(asked[0], "@0") && !strings.HasSuffix(asked[0], "@1") {
			t.Errorf("asked %v", asked)
		}
		// All tasks move: the owners of yesterday know better.
		for p := range int32(partitions) {
			a.move(p, 1)
		}
		a.publish()
		check()
		if found, err := r.MultiGet(t.Context(), nil); found != nil || err != nil {
			t.Errorf("no keys: %v, %v", found, err)
		}
		// Nobody has one of the partitions.
		a.move(0, -1)
		a.publish()
		if _, err := r.MultiGet(t.Context(), all); !is(err, query.NoOwner) {
			t.Errorf("no owner: %v", err)
		}
	})
}

// Keys that had one owner have two now: whoever is named for one of them is asked to find the other.
func TestMultiGetOfDividedKeys(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		get(t, r, keyOf(0), "")
		a.asked()
		a.move(0, 1)
		a.publish()
		if _, err := r.MultiGet(t.Context(), []string{keyOf(0), keyOf(2)}); err != nil {
			t.Error(err)
		}
		wantAsked(t, a, "multi2@0 multi2@1")
	})
}

// The bounds of a question, as the API takes them.
func TestMillis(t *testing.T) {
	if got := millis(time.Time{}); got != "" {
		t.Errorf("no time: %q", got)
	}
	if got := millis(time.UnixMilli(-5)); got != "-5" {
		t.Errorf("before 1970: %q", got)
	}
}
