package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func sample() *Manifest {
	return &Manifest{
		Version: 1, App: "shop", Sub: "by-campaign", Partition: 12, Seq: 300, Writer: 0x0102030405060708,
		Created: 1_700_000_000_500, Time: 1_700_000_000_123, W: -5, Format: 24, Fingerprint: "f00d",
		Stores:   []Store{{"count", "key-value", "string", "int64"}, {"panes", "window", "string", "json:{a:int}"}},
		Ends:     []End{{"count", 77}, {"panes", 0}},
		TopicIDs: map[string][16]byte{"shop-count-changelog": {1, 15: 2}, "shop-panes-changelog": {3}},
		Owners:   []string{"before-release"},
		Files: []File{
			{Name: "000004.log", Data: []byte{}, Sum: sha256.Sum256(nil)},
			{Name: "000007.sst", Size: 1 << 20, Sum: sha256.Sum256([]byte("seven"))},
			{Name: "MANIFEST-000001", Size: 3, Data: []byte("abc"), Sum: sha256.Sum256([]byte("abc"))},
		},
	}
}

// sealed appends a right checksum.
func sealed(body []byte) []byte { return binary.BigEndian.AppendUint32(body, checksum(body)) }

func encode(t *testing.T, m *Manifest) []byte {
	t.Helper()
	b, err := m.Append(nil)
	check(t, err)
	return b
}

func TestManifestGolden(t *testing.T) {
	b := encode(t, sample())
	golden := filepath.Join("testdata", "manifest-1")
	if *rewrite {
		check(t, os.WriteFile(golden, b, 0o644))
	}
	want, err := os.ReadFile(golden)
	check(t, err)
	if string(b) != string(want) {
		t.Errorf("the encoding of version 1 changed:\n got %x\nwant %x", b, want)
	}
	back, err := Decode(want)
	check(t, err)
	if d := cmp.Diff(sample(), back); d != "" {
		t.Error(d)
	}
	if n := back.Bytes(); n != 1<<20+3 {
		t.Errorf("%d bytes", n)
	}
	if end, ok := back.End("count"); !ok || end != 77 {
		t.Errorf("position %d, %v", end, ok)
	}
	if _, ok := back.End("none"); ok {
		t.Error("a store that is not there has a position")
	}
	const key = "shop/by-campaign/12/sst/"
	if got := back.Object(back.Files[1]); !strings.HasPrefix(got, key) || len(got) != len(key)+64 {
		t.Errorf("object %s", got)
	}
	if behind, err := sample().Append([]byte("xyz")); err != nil || string(behind) != "xyz"+string(b) {
		t.Errorf("appended: %x, %v", behind, err)
	}
}

func TestManifestSmallest(t *testing.T) {
	m := &Manifest{Version: 1, App: "a", Sub: "b"}
	back, err := Decode(encode(t, m))
	check(t, err)
	if d := cmp.Diff(m, back); d != "" {
		t.Error(d)
	}
	unversioned := &Manifest{App: "a", Sub: "b"}
	if string(encode(t, unversioned)) != string(encode(t, m)) {
		t.Error("version 0 is not the newest")
	}
}

func TestManifestRefusals(t *testing.T) {
	good := encode(t, sample())
	for i := range good {
		for _, bit := range []byte{1, 0x80} {
			bad := append([]byte{}, good...)
			bad[i] ^= bit
			if _, err := Decode(bad); !errors.Is(err, ErrDamaged) {
				t.Fatalf("byte %d changed: %v", i, err)
			}
		}
		if _, err := Decode(good[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("first %d bytes: %v", i, err)
		}
	}
	body := good[:len(good)-4]
	if _, err := Decode(sealed(append(append([]byte{}, body...), 0))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
	newer := sealed(append([]byte{2}, body[1:]...))
	_, err := Decode(newer)
	if ve, ok := errors.AsType[*VersionError](err); !ok || ve.Have != 2 || ve.Max != 1 || errors.Is(err, ErrDamaged) {
		t.Errorf("a newer version: %v", err)
	}
	if _, err := (&Manifest{Version: 2, App: "a", Sub: "b"}).Append(nil); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("encoded version 2: %v", err)
	}
}

// unchecked is the encoding of a manifest that Append refuses.
func unchecked(t *testing.T, from, to string) []byte {
	t.Helper()
	if len(from) != len(to) {
		t.Fatal("lengths differ")
	}
	m := sample()
	b := encode(t, m)
	body := string(b[:len(b)-4])
	if !strings.Contains(body, from) {
		t.Fatalf("%q is not in the manifest", from)
	}
	return sealed([]byte(strings.Replace(body, from, to, 1)))
}

// Names come from a bucket and become paths.
func TestManifestRefusesPaths(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"000007.sst", "../../x.ss"},
		{"000007.sst", "/etc/passw"},
		{"000007.sst", "a/b/c/d.ss"},
		{"000007.sst", `..\..\x.ss`},
		{"000007.sst", "00000\x00.sst"},
		{"000007.sst", "000004.log"}, // twice
		{"000007.sst", "000003.log"}, // out of order
		{"by-campaign", "by/campaign"},
		{"by-campaign", "../campaign"},
		{"shop", "..//"},
		{"shop-panes-changelog", "shop-count-changelog"}, // a topic twice
	} {
		if _, err := Decode(unchecked(t, c.from, c.to)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q for %q: %v", c.to, c.from, err)
		}
	}
	for name, change := range map[string]func(*Manifest){
		"path":         func(m *Manifest) { m.Files[1].Name = "../000007.sst" },
		"dots":         func(m *Manifest) { m.Files[0].Name = ".." },
		"no name":      func(m *Manifest) { m.Files[0].Name = "" },
		"order":        func(m *Manifest) { m.Files[0].Name = "z" },
		"size":         func(m *Manifest) { m.Files[1].Size = -1 },
		"data":         func(m *Manifest) { m.Files[2].Size = 4 },
		"no app":       func(m *Manifest) { m.App = "" },
		"app":          func(m *Manifest) { m.App = "a/b" },
		"sub":          func(m *Manifest) { m.Sub = ".." },
		"partition":    func(m *Manifest) { m.Partition = -1 },
		"format":       func(m *Manifest) { m.Format = -1 },
		"large format": func(m *Manifest) { m.Format = math.MaxInt32 + 1 },
		"end":          func(m *Manifest) { m.Ends[0].End = -1 },
	} {
		m := sample()
		change(m)
		if b, err := m.Append([]byte("x")); err == nil || string(b) != "x" {
			t.Errorf("%s: encoded as %x, %v", name, b, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	good, err := sample().Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[:len(good)-4])
	f.Add([]byte{1, 1, 'a', 1, 'b', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := Decode(sealed(append([]byte{}, body...)))
		if err != nil {
			return
		}
		again, err := m.Append(nil)
		if err != nil || string(again[:len(again)-4]) != string(body) {
			t.Fatalf("%x decodes to %+v, which encodes to %x, %v", body, m, again, err)
		}
	})
}
