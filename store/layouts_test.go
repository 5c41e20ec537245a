package store

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The changelog has the bytes of Kafka Streams: written by hand from its formats.
func TestLayoutsGolden(t *testing.T) {
	minute := WindowLayout(func(e int64) int64 { return e - 60_000 }, func(s int64) int64 { return s + 60_000 }, true)
	plain := WindowLayout(func(e int64) int64 { return e - 60_000 }, func(s int64) int64 { return s + 60_000 }, false)
	const long = 1_700_000_040_000
	for _, c := range []struct {
		name       string
		l          Layout
		key        []byte
		value      string // hex; "-" is a tombstone
		ckey       string
		cvalue     string
		header     string
		time       int64
		noTombBack bool
	}{
		{"window", plain, AppendWindowKey(nil, long, []byte("key")), "7631", "6b6579 0000018bcfe519e0 00000000", "7631", "-", 0, false},
		{"window before 1970", plain, AppendWindowKey(nil, 0, []byte("k")), "01", "6b ffffffffffff15a0 00000000", "01", "-", 0, false},
		{"window with panes", minute, AppendWindowKey(nil, 60_000, []byte("k")), "02 aabb 7631", "6b 0000000000000000 00000000", "7631", "aabb", 0, false},
		{"window without state", minute, AppendWindowKey(nil, 60_000, []byte("k")), "00 7631", "6b 0000000000000000 00000000", "7631", "-", 0, false},
		{"window, empty value and key", minute, AppendWindowKey(nil, 60_000, nil), "01 aa", "0000000000000000 00000000", "", "aa", 0, false},
		{"window removed", minute, AppendWindowKey(nil, 60_000, []byte("k")), "-", "6b 0000000000000000 00000000", "-", "-", 0, false},
		{"session", SessionLayout(false), AppendSessionKey(nil, []byte("k\x00"), Span{Start: 1, End: 259}), "05", "6b00 0000000000000102 0000000000000001", "05", "-", 0, false},
		{"session removed", SessionLayout(true), AppendSessionKey(nil, []byte("k"), Span{Start: 1, End: 259}), "-", "6b 0000000000000102 0000000000000001", "-", "-", 0, false},
		{"version", VersionedLayout(), AppendVersionKey(nil, []byte("k"), 77), "01 7631", "6b", "7631", "-", 77, false},
		{"version without value", VersionedLayout(), AppendVersionKey(nil, nil, -5), "00", "", "-", "-", -5, false},
		{"expiring", ExpiringLayout(), []byte("k"), "0000000000000102 7631", "6b", "7631", "0000000000000102", 0, false},
		{"expiring removed", ExpiringLayout(), []byte("k"), "-", "6b", "-", "-", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bytesOf := func(s string) []byte {
				if s == "-" {
					return nil
				}
				return unhex(t, s)
			}
			value := bytesOf(c.value)
			ckey, cvalue, header := c.l.Export(make([]byte, 0, 64), c.key, value)
			if !bytes.Equal(ckey, unhex(t, c.ckey)) || !same(cvalue, bytesOf(c.cvalue)) || !same(header, bytesOf(c.header)) {
				t.Errorf("export: %x, %x, %x", ckey, cvalue, header)
			}
			key, back, err := c.l.Import(nil, ckey, cvalue, header, c.time)
			if err != nil || !bytes.Equal(key, c.key) || !same(back, value) {
				t.Errorf("import: %x, %x, %v; want %x, %x", key, back, err, c.key, value)
			}
		})
	}
	if ckey, _, _ := VersionedLayout().Export(nil, AppendVersionKey(nil, []byte("k"), 1), nil); ckey != nil {
		t.Errorf("a version that is dropped leaves a record: %x", ckey)
	}
}

// same tells nil from empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// What is not in the layout is refused, and does not panic.
func TestLayoutsRefuse(t *testing.T) {
	for _, l := range []Layout{WindowLayout(nil, nil, true), SessionLayout(true), ExpiringLayout()} {
		if _, _, err := l.Import(nil, []byte("short"), []byte("v"), nil, 0); err == nil {
			t.Errorf("%T takes a short key", l)
		}
	}
	b, err := NewBulk(NewMem(), []Spec{{ID: "s", Kind: Session}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add(0, []byte("short"), []byte("v"), nil, 0); err == nil {
		t.Error("bulk takes a short key")
	}
}
