package bare

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/store/pebblestore"
)

// Every key ends with its last value, also when it was written in an earlier run.
func TestLastValueStays(t *testing.T) {
	db, err := pebblestore.Open(t.TempDir(), pebblestore.Options{FS: pebblestore.NewMemFS()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tab := &table{db: db, limit: 20 * (perRow + 20)}
	tab.reset()
	const keys, n = 50, 400
	for i := range n {
		r := &kgo.Record{Key: fmt.Appendf(nil, "k%02d", i*7%keys), Value: fmt.Appendf(nil, "v%d", i), Timestamp: time.UnixMilli(int64(i))}
		if err := tab.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := tab.load(); err != nil {
		t.Fatal(err)
	}
	for i := n - keys; i < n; i++ {
		got, ok, err := db.Get(nil, fmt.Appendf([]byte{1, 0}, "k%02d", i*7%keys))
		want := fmt.Appendf(binary.BigEndian.AppendUint64(nil, uint64(i)), "v%d", i)
		if err != nil || !ok || string(got) != string(want) {
			t.Errorf("key of %d: %q, %v, %v; want %q", i, got, ok, err, want)
		}
	}
}
