package check_test

import (
	"encoding/binary"
	"hash/maphash"
	"testing"

	"github.com/tidemark/tidemark/bench/internal/check"
	"github.com/tidemark/tidemark/bench/internal/workload"
)

// The sum is that of the rows there are now, whatever they were before.
func TestRows(t *testing.T) {
	s, err := workload.Find("STATE")
	if err != nil {
		t.Fatal(err)
	}
	s.Keys, s.Size = 50, 200
	seed := maphash.MakeSeed()
	r := check.NewRows(s.Keys, seed)
	r.Fill(s, 80, 7) // thirty of the keys, or fewer, come again
	last := map[string][]byte{}
	g := workload.NewGen(s, 80, 7)
	var rec workload.Rec
	put := func(key, value []byte, ms int64) {
		row := append([]byte{1, 0}, key...)
		last[string(key)] = append(binary.BigEndian.AppendUint64(row, uint64(ms)), value...)
	}
	for g.Next(&rec) {
		put(workload.AppendKey(nil, rec.ID), g.AppendValue(nil, &rec), rec.Time)
	}
	compare := func() {
		t.Helper()
		var want uint64
		for _, row := range last {
			want += maphash.Bytes(seed, row)
		}
		if got := r.Compare(int64(len(last)), want); got != "ok" {
			t.Error(got)
		}
		if r.Compare(int64(len(last)), want+1) == "ok" || r.Compare(int64(len(last))-1, want) == "ok" {
			t.Error("other rows are ok, too")
		}
	}
	compare()
	key, value := workload.AppendKey(nil, 3), make([]byte, s.Size)
	r.Set(key, value, 9)
	compared := len(last)
	put(key, value, 9)
	compare()
	if len(last) != compared || compared != 50 {
		t.Errorf("%d rows, then %d", compared, len(last))
	}
	r.Set(key, value, 10)
	put(key, value, 10)
	compare()
	for range 2 {
		r.Remove(3)
		delete(last, string(key))
		compare()
	}
}
