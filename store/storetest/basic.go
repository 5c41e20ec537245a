package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark/tidemark/store"
)

// A-EMPTY-KEY: an empty value is a value, and the empty key of a store, which is its bare number here, is a key.
func testEmptyKey(t *testing.T, d Disk) {
	const number = "\x01\x00"
	db := open(t, d)
	apply(t, db, number, "", number+"a", "")
	check(t, db.Flush())
	want(t, db, nil, nil, number, "", number+"a", "")
	check(t, db.Load(&run{pairs: []string{number, "x", number + "a", "-", number + "b", ""}}))
	want(t, db, nil, nil, number, "x", number+"b", "")
	apply(t, db, number, "-")
	want(t, db, nil, nil, number+"b", "")
}

func testGet(t *testing.T, d Disk) {
	db := open(t, d)
	apply(t, db, "k", "value", "empty", "")
	for _, c := range []struct {
		key, want string
		ok        bool
	}{{"k", "dst-value", true}, {"empty", "dst-", true}, {"", "dst-", false}, {"kk", "dst-", false}} {
		got, ok, err := db.Get([]byte("dst-"), []byte(c.key))
		if err != nil || ok != c.ok || string(got) != c.want {
			t.Errorf("get %q: %q %v %v", c.key, got, ok, err)
		}
	}
	// The key may lie in front of where the value goes.
	buf := append(make([]byte, 0, 100), 'k')
	if got, _, _ := db.Get(buf, buf); string(got) != "kvalue" {
		t.Errorf("get into the buffer of the key: %q", got)
	}
}

func testBatch(t *testing.T, d Disk) {
	db := open(t, d)
	apply(t, db, "a", "1", "b", "1", "a", "2", "b", "-", "c", "-", "c", "3")
	want(t, db, nil, nil, "a", "2", "c", "3")
	var b store.Batch
	check(t, db.Apply(&b))
	b.Set([]byte("z"), []byte("1"))
	check(t, db.Apply(&b))
	b.Reset()
	b.Delete([]byte("a"))
	check(t, db.Apply(&b))
	want(t, db, nil, nil, "c", "3", "z", "1")
}

func testLoad(t *testing.T, d Disk) {
	db := open(t, d)
	check(t, db.Load(&run{}))
	check(t, db.Load(&run{pairs: []string{"a", "1", "b", "1", "c", "1"}}))
	apply(t, db, "b", "2", "d", "2")
	check(t, db.Load(&run{pairs: []string{"a", "-", "b", "3", "nothing", "-"}}))
	want(t, db, nil, nil, "b", "3", "c", "1", "d", "2")
	apply(t, db, "b", "-")
	want(t, db, nil, nil, "c", "1", "d", "2")
	check(t, db.Load(&run{pairs: []string{"c", "-", "d", "-"}}))
	want(t, db, nil, nil)
}

func testScan(t *testing.T, d Disk) {
	db := open(t, d)
	check(t, db.Load(&run{pairs: []string{"\x00", "0", "\x00\x00", "1", "a", "2", "a\x00", "3", "ab", "4", "b", "5"}}))
	apply(t, db, "\xff", "6", "\xff\xff", "7", "a", "8")
	for _, c := range []struct {
		lo, hi []byte
		want   string
	}{
		{nil, nil, "0183 4567"},
		{[]byte{}, []byte{}, ""},
		{[]byte("a"), []byte("b"), "834"},
		{[]byte("a\x00"), []byte("ab"), "3"},
		{[]byte("aa"), nil, "4567"},
		{[]byte("\xff"), nil, "67"},
		{[]byte("\xff\xff\x00"), nil, ""},
		{[]byte("b"), []byte("a"), ""},
		{[]byte("b"), []byte("b"), ""},
		{nil, []byte("\x00\x00"), "0"},
	} {
		it, err := db.Scan(c.lo, c.hi)
		check(t, err)
		var got strings.Builder
		for it.Next() {
			got.Write(it.Value())
		}
		check(t, errors.Join(it.Err(), it.Close()))
		if got.String() != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("scan from %q to %q: %s, want %s", c.lo, c.hi, got.String(), c.want)
		}
	}
}

// D-RANGEDEL without range deletes: a scan shows the rows of its beginning whatever happens to them.
func testScanSnapshot(t *testing.T, d Disk) {
	db := open(t, d)
	apply(t, db, "a", "1", "b", "1", "c", "1")
	check(t, db.Flush())
	it, err := db.Scan(nil, nil)
	check(t, err)
	apply(t, db, "a", "-", "b", "2", "bb", "2")
	check(t, db.Load(&run{pairs: []string{"c", "-", "d", "3"}}))
	compare(t, it, "a", "1", "b", "1", "c", "1")
	want(t, db, nil, nil, "b", "2", "bb", "2", "d", "3")
}

// D-SINGLE-DELETE: a delete hides every earlier version, flushed or not.
func testSingleDelete(t *testing.T, d Disk) {
	db := open(t, d)
	for _, flush := range []bool{false, true} {
		for range 3 {
			apply(t, db, "k", "v", "other", "1")
			if flush {
				check(t, db.Flush())
			}
		}
		apply(t, db, "k", "-")
		check(t, db.Flush())
		want(t, db, nil, nil, "other", "1")
		check(t, db.Load(&run{pairs: []string{"k", "again"}}))
		check(t, db.Load(&run{pairs: []string{"k", "-"}}))
		want(t, db, nil, nil, "other", "1")
	}
}

func testClosed(t *testing.T, d Disk) {
	db, err := d.Open()
	check(t, err)
	check(t, db.Close())
	check(t, db.Close())
	_, _, getErr := db.Get(nil, []byte("a"))
	_, scanErr := db.Scan(nil, nil)
	for name, err := range map[string]error{
		"get": getErr, "scan": scanErr, "apply": db.Apply(new(store.Batch)), "flush": db.Flush(),
		"load": db.Load(&run{pairs: []string{"a", "1"}}),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
}

// Reads from one goroutine during writes from another see whole batches and runs, in order.
func testReadDuringWrite(t *testing.T, d Disk) {
	db := open(t, d)
	const rounds = 60
	apply(t, db, "a", "000", "b", "000")
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; n <= rounds; n++ {
			v := fmt.Sprintf("%03d", n)
			switch n % 3 {
			case 0:
				apply(t, db, "a", v, "b", v)
			case 1:
				if err := db.Load(&run{pairs: []string{"a", v, "b", v}}); err != nil {
					t.Error(err)
				}
			default:
				apply(t, db, "a", v, "b", v)
				if err := db.Flush(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	last := ""
	for last < fmt.Sprintf("%03d", rounds) && !t.Failed() {
		it, err := db.Scan(nil, nil)
		check(t, err)
		var got []string
		for it.Next() {
			got = append(got, string(it.Value()))
		}
		check(t, errors.Join(it.Err(), it.Close()))
		if len(got) != 2 || got[0] != got[1] || got[0] < last {
			t.Errorf("scan shows %q after %s", got, last)
			break
		}
		last = got[0]
		v, ok, err := db.Get(nil, []byte("a"))
		if err != nil || !ok || string(v) < last {
			t.Errorf("get: %s %v %v after %s", v, ok, err, last)
			break
		}
	}
	wg.Wait()
}
