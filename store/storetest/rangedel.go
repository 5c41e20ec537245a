package storetest

import (
	"strings"
	"testing"
)

// D-RANGEDEL: a range delete, in a batch or a run, hides what was written before it and nothing else; a view from before
// shows all.
func testRangeDel(t *testing.T, d Disk) {
	letters := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
	for _, load := range []bool{false, true} {
		db := open(t, d)
		var all []string
		for _, l := range letters {
			all = append(all, l, "1")
		}
		apply(t, db, all...)
		check(t, db.Flush())
		it, err := db.Scan([]byte("a"), nil)
		check(t, err)
		if load {
			check(t, db.Load(&run{pairs: []string{"b", "-", "c", rangeTo + "x", "x", "2"}}))
		} else {
			apply(t, db, "d", "lost", "c", rangeTo+"x", "x", "2", "b", "-", "z", rangeTo+"z", "z", rangeTo+"a")
		}
		check(t, db.Flush())
		compare(t, it, all...)
		want(t, db, []byte("a"), nil, "a", "1", "x", "2", "y", "1", "z", "1")
		if _, ok, err := db.Get(nil, []byte("m")); ok || err != nil {
			t.Errorf("get inside the range: %v %v", ok, err)
		}
		apply(t, db, "m", "3")
		want(t, db, []byte("c"), []byte("x"), "m", "3")
		apply(t, db, "a", rangeTo+"zz")
		want(t, db, []byte("a"), nil)
		check(t, db.Close())
		if d.Crash == nil {
			continue
		}
		again := open(t, d)
		got := content(t, again, []byte("a"), nil)
		if len(got) != 4 && len(got) != 5 && len(got) != 0 {
			t.Errorf("after reopening: %v", got)
		}
		apply(t, again, "a", rangeTo+"zz")
		check(t, again.Close())
	}
}
