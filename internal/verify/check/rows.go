package check

import (
	"encoding/binary"
	"fmt"
	"maps"
)

// Rows is the content of one store, by encoded key: timestamp in ms, 8 bytes big-endian, and value.
type Rows map[string]string

// Replay applies one record of the store's changelog; a nil value is a tombstone.
func (r Rows) Replay(key, value []byte, timeMs int64) {
	if value == nil {
		delete(r, string(key))
		return
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(timeMs))
	r[string(key)] = string(append(b, value...))
}

// Compare checks that a store holds exactly what the replay of its changelog up to the same position gives.
func Compare(name string, log, is Rows) *Report {
	r := new(Report)
	if maps.Equal(log, is) {
		return r
	}
	for k, v := range log {
		if w, ok := is[k]; !ok {
			r.Wrongly("%s: row %q is missing", name, k)
		} else if v != w {
			r.Wrongly("%s: row %q is %s, its changelog says %s", name, k, show(w), show(v))
		}
	}
	for k := range is {
		if _, ok := log[k]; !ok {
			r.Wrongly("%s: row %q is not in the changelog", name, k)
		}
	}
	return r
}

func show(v string) string { return fmt.Sprintf("%x/%q", v[:8], v[8:]) }
