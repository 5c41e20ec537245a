package upgrade_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/rebalance"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
)

// format is a form in which bytes outlive a process. They begin with a version, at an offset, and may end in a checksum.
type format struct {
	name    string
	encode  func() ([]byte, error)
	decode  func([]byte) error
	at      int
	sum     bool
	version byte
}

func seal(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// newer returns bytes that say they are of the next version.
func (f format) newer(b []byte) []byte {
	b = bytes.Clone(b)
	b[f.at]++
	if f.sum {
		b = seal(b[:len(b)-4])
	}
	return b
}

func formats(t *testing.T) []format {
	control := func(name string, r changelog.ControlRecord) format {
		return format{"control " + name, func() ([]byte, error) { return r.Value, nil }, func(b []byte) error {
			return new(changelog.ControlState).Apply(r.Key, b)
		}, 0, true, changelog.ControlVersion}
	}
	shape, err := shape(t, count()).Operators[0].Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	progress := &changelog.Progress{
		Seq: 7, Writer: 9, Time: 1000, W: 900, Offsets: []changelog.TopicOffset{{Topic: "in", Partition: 1, Offset: 5}},
		Ends: []changelog.StoreEnd{{Store: "n", End: 3}}, TopicIDs: []changelog.TopicID{{Topic: "in", ID: [16]byte{1, 2}}},
	}
	member := rebalance.MemberData{
		Instance: "00ff", Endpoint: "h:1", Workers: 2, TransactionalPrefix: "app-00ff", StateFingerprint: "s", BuildFingerprint: "b",
		Subs: []rebalance.Sub{{ID: "n", Topics: []string{"in"}}},
	}
	assignment := rebalance.Assignment{
		Format: rebalance.FormatMax, Generation: 3, StateFingerprint: "s", Hosts: []rebalance.Host{{Instance: "00ff", Workers: 2, TransactionalPrefix: "app-00ff"}},
		Placements: []rebalance.Placement{{Sub: "n", Owners: []int{0, -1}}},
	}
	manifest := snapshot.Manifest{
		App: "app", Sub: "n", Seq: 7, Writer: 9, Created: 1001, Time: 1000, W: 900, Format: 16, Fingerprint: "s",
		Stores: []snapshot.Store{{ID: "n", Kind: "key-value", KeySchema: "string", ValueSchema: "int64"}}, Ends: []snapshot.End{{Store: "n", End: 3}},
	}
	versioned := func(n int) codec.Codec[string] { return codec.Versioned(codec.String(), n, nil) }
	return []format{
		control("sub-topology", changelog.SubRecord(changelog.SubTopology{ID: "n", Operators: []string{"n"}, Topics: []string{"in"}})),
		control("store", changelog.StoreRecordOf(changelog.StoreRecord{ID: "n", Kind: "key-value", KeySchema: "string", ValueSchema: "int64", Changelog: true})),
		control("shape", changelog.ShapeRecordOf(changelog.ShapeRecord{Operator: "n", Fingerprint: "s", Shape: shape})),
		control("format", changelog.FormatRecord("userdata", 1)),
		control("state", changelog.StateRecordOf(changelog.StateRecord{Fingerprint: "s", Compatible: []string{"r"}, Time: 1000})),
		{"shape of an operator", func() ([]byte, error) { return shape, nil }, func(b []byte) error {
			_, err := topology.DecodeOperatorShape(b)
			return err
		}, 0, true, topology.ShapeVersion},
		{"progress", func() ([]byte, error) { return progress.Append(nil) }, func(b []byte) error {
			_, err := changelog.DecodeProgress(b)
			return err
		}, 0, true, changelog.ProgressVersion},
		{"offset metadata", func() ([]byte, error) {
			return []byte(changelog.Metadata{Seq: 7, Writer: 9, W: 900, Ends: []int64{3}}.String()), nil
		}, func(b []byte) error {
			_, _, err := changelog.ParseMetadata(string(b))
			return err
		}, 2, false, '0' + changelog.MetadataVersion},
		{"watermark control record", func() ([]byte, error) {
			c := watermark.Control{Kind: watermark.KindWatermark, Epoch: 1, Writer: 2, Tasks: 2, Entries: []watermark.Entry{{Task: 1, W: 900, Seq: 7}}}
			return c.Append(nil), nil
		}, func(b []byte) error {
			_, err := watermark.ParseControl(b)
			return err
		}, 1, true, 1},
		{"member", func() ([]byte, error) { return member.Append(nil, rebalance.FormatMax) }, func(b []byte) error {
			_, err := rebalance.DecodeMember(b)
			return err
		}, 0, false, rebalance.FormatMax},
		{"assignment", func() ([]byte, error) { return assignment.Append(nil) }, func(b []byte) error {
			_, err := rebalance.DecodeAssignment(b)
			return err
		}, 0, false, rebalance.FormatMax},
		{"manifest", func() ([]byte, error) { return manifest.Append(nil) }, func(b []byte) error {
			_, err := snapshot.Decode(b)
			return err
		}, 0, true, snapshot.Version},
		{"value of state version 2", func() ([]byte, error) { return versioned(2).Append(nil, "v") }, func(b []byte) error {
			_, err := versioned(2).Decode(b)
			return err
		}, 1, false, 2},
		{"stores of a database", func() ([]byte, error) {
			db := store.NewMem()
			s, err := store.Open(db, []store.Spec{{ID: "n", KeySchema: "string", ValueSchema: "int64", Changelog: true}}, store.Options{})
			if err != nil {
				return nil, err
			}
			if err := s.Seal(func(store.Change) error { return nil }); err != nil {
				return nil, err
			}
			if err := s.Commit([]byte("p"), 0); err != nil {
				return nil, err
			}
			if err := s.Persist(0, true); err != nil {
				return nil, err
			}
			b, _, err := db.Get(nil, []byte("\x00stores"))
			return b, err
		}, func(b []byte) error {
			db := store.NewMem()
			var batch store.Batch
			batch.Set([]byte("\x00progress"), []byte("p"))
			batch.Set([]byte("\x00stores"), b)
			if err := db.Apply(&batch); err != nil {
				return err
			}
			_, err := store.Open(db, nil, store.Options{})
			return err
		}, 0, false, 1},
	}
}

// U-FORMAT: every stored form is what it was (an old one stays readable: the golden bytes are decoded), and of the next
// version it is refused with both versions named.
func TestUFormat(t *testing.T) {
	path := filepath.Join("testdata", "formats.txt")
	if *rewrite {
		var b strings.Builder
		for _, f := range formats(t) {
			text, err := f.encode()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n%x\n", f.name, text)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string][]byte{}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if golden[lines[i]], err = hex.DecodeString(lines[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range formats(t) {
		t.Run(f.name, func(t *testing.T) {
			was := golden[f.name]
			now, err := f.encode()
			if err != nil || !bytes.Equal(was, now) {
				t.Fatalf("%x, %v, was %x", now, err, was)
			}
			if was[f.at] != f.version {
				t.Errorf("version %d, want %d", was[f.at], f.version)
			}
			if err := f.decode(was); err != nil {
				t.Error(err)
			}
			err = f.decode(f.refuse(t, was))
			have, want := int(f.version)+1, int(f.version)
			if f.version >= '0' {
				have, want = have-'0', want-'0'
			}
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(have)) || !strings.Contains(err.Error(), fmt.Sprint(want)) {
				t.Errorf("version %d is not refused by its name: %v", have, err)
			}
		})
	}
}

// refuse is newer, of an envelope whose checksum is good.
func (f format) refuse(t *testing.T, b []byte) []byte {
	t.Helper()
	if strings.HasPrefix(f.name, "value") {
		b, err := codec.Versioned(codec.String(), int(f.version)+1, nil).Append(nil, "v")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return f.newer(b)
}
