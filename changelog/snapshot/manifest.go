package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/wire"
)

// Version is the newest layout of a manifest that this package writes and reads; VersionMin is the oldest it reads.
const (
	Version    = 1
	VersionMin = 1
)

// File is one file of a database.
type File struct {
	Name string
	Size int64             // bytes
	Sum  [sha256.Size]byte // SHA-256 of the content
	Data []byte            // the content of a file that lies in the manifest; nil for one that is an object of its own
}

// Store is a store whose rows the database holds.
type Store struct {
	ID                           string
	Kind, KeySchema, ValueSchema string
}

// End is a position in the changelog partition of a store: the next offset to replay.
type End struct {
	Store string
	End   int64
}

// Manifest describes one snapshot of one task: what the files are, and where in the task's history they stand.
type Manifest struct {
	// Version of the layout. Zero means Version when encoding; decoding sets it.
	Version int
	// App, Sub and Partition name the task.
	App, Sub  string
	Partition int32
	// Seq and Writer are those of the commit whose state the database holds.
	Seq, Writer uint64
	// Created is the wall clock when the snapshot was taken, Time that of the commit it holds, in ms since 1970.
	Created, Time int64
	// W is the watermark of the commit, in ms.
	W int64
	// Format is the version of the database's own format.
	Format int
	// Fingerprint is that of the topology's state.
	Fingerprint string
	Stores      []Store
	Ends        []End
	// TopicIDs are the ids of the topics that the positions refer to, by name.
	TopicIDs map[string][16]byte
	// Owners names the savepoints that hold the snapshot.
	Owners []string
	// Files are the files of the database, ascending by name.
	Files []File
}

// Task returns whose snapshot it is.
func (m *Manifest) Task() Task { return Task{m.App, m.Sub, m.Partition} }

// Bytes returns the size of all files.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// End returns the position of a store's changelog.
func (m *Manifest) End(store string) (int64, bool) {
	for _, e := range m.Ends {
		if e.Store == store {
			return e.End, true
		}
	}
	return 0, false
}

// Object returns the key under which a file that is not in the manifest lies.
func (m *Manifest) Object(f File) string { return m.Task().object(f.Sum) }

// Append appends the encoding of m to dst. It is deterministic.
//
//	+---------+-------------------+-----+--------+---------+------+----+--------+-------------+
//	| version | app sub partition | seq | writer | created | time | W  | format | fingerprint |
//	| 1 byte  | str str uv        | uv  | 8      | sv      | sv   | sv | uv     | str         |
//	+---------+-------------------+-----+--------+---------+------+----+--------+-------------+
//	| stores | ends | topic ids | owners | files | crc32c |
//	| list   | list | list      | list   | list  | 4      |
//	+--------+------+-----------+--------+-------+--------+
//	list     = uv count, entries
//	store    = str id, str kind, str key schema, str value schema
//	end      = str store, uv end
//	topic id = str topic, 16 bytes; ascending by topic
//	owner    = str
//	file     = str name, 0, uv size, 32 bytes sha256   an object of its own; ascending by name
//	         | str name, 1, str content                in the manifest
//
// uv is a uvarint, sv a zigzag varint, str a uvarint length and bytes, fixed numbers are big-endian. The checksum
// (Castagnoli) covers everything before it. The layout of a version must not change; a new field makes a new version.
func (m *Manifest) Append(dst []byte) ([]byte, error) {
	version := m.Version
	if version == 0 {
		version = Version
	}
	if version < VersionMin || version > Version {
		return dst, &VersionError{"manifest", version, VersionMin, Version}
	}
	if err := m.check(); err != nil {
		return dst, fmt.Errorf("snapshot: encode manifest of %v: %w", m.Task(), err)
	}
	start := len(dst)
	dst = append(dst, byte(version))
	dst = wire.AppendString(dst, m.App)
	dst = wire.AppendString(dst, m.Sub)
	dst = wire.AppendUvarint(dst, uint64(m.Partition))
	dst = wire.AppendUvarint(dst, m.Seq)
	dst = wire.AppendUint64(dst, m.Writer)
	dst = wire.AppendVarint(dst, m.Created)
	dst = wire.AppendVarint(dst, m.Time)
	dst = wire.AppendVarint(dst, m.W)
	dst = wire.AppendUvarint(dst, uint64(m.Format))
	dst = wire.AppendString(dst, m.Fingerprint)
	dst = wire.AppendUvarint(dst, uint64(len(m.Stores)))
	for _, s := range m.Stores {
		for _, text := range []string{s.ID, s.Kind, s.KeySchema, s.ValueSchema} {
			dst = wire.AppendString(dst, text)
		}
	}
	dst = wire.AppendUvarint(dst, uint64(len(m.Ends)))
	for _, e := range m.Ends {
		dst = wire.AppendString(dst, e.Store)
		dst = wire.AppendUvarint(dst, uint64(e.End))
	}
	dst = wire.AppendUvarint(dst, uint64(len(m.TopicIDs)))
	for _, topic := range slices.Sorted(maps.Keys(m.TopicIDs)) {
		id := m.TopicIDs[topic]
		dst = append(wire.AppendString(dst, topic), id[:]...)
	}
	dst = wire.AppendUvarint(dst, uint64(len(m.Owners)))
	for _, owner := range m.Owners {
		dst = wire.AppendString(dst, owner)
	}
	dst = wire.AppendUvarint(dst, uint64(len(m.Files)))
	for _, f := range m.Files {
		dst = wire.AppendString(dst, f.Name)
		if f.Data != nil {
			dst = wire.AppendString(append(dst, 1), f.Data)
			continue
		}
		dst = wire.AppendUvarint(append(dst, 0), uint64(f.Size))
		dst = append(dst, f.Sum[:]...)
	}
	return binary.BigEndian.AppendUint32(dst, checksum(dst[start:])), nil
}

// Decode parses a manifest. The contents of files alias b. The error is ErrDamaged for bytes that are no manifest and a
// *VersionError for a layout this build does not know.
func Decode(b []byte) (*Manifest, error) {
	body, err := checked(b)
	if err != nil {
		return nil, err
	}
	r := wire.NewReader(body)
	m := &Manifest{Version: int(r.Byte()), App: r.String(), Sub: r.String(), Partition: r.Int32()}
	m.Seq, m.Writer = r.Uvarint(), r.Uint64()
	m.Created, m.Time, m.W = r.Varint(), r.Varint(), r.Varint()
	m.Format, m.Fingerprint = int(r.Int32()), r.String()
	for range r.Count(4) {
		m.Stores = append(m.Stores, Store{r.String(), r.String(), r.String(), r.String()})
	}
	for range r.Count(2) {
		m.Ends = append(m.Ends, End{r.String(), natural(r)})
	}
	m.TopicIDs = topicIDs(r)
	for range r.Count(1) {
		m.Owners = append(m.Owners, r.String())
	}
	for range r.Count(3) {
		m.Files = append(m.Files, file(r))
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("snapshot: decode manifest: %w: %v", ErrDamaged, err)
	}
	if r.Len() != 0 {
		return nil, fmt.Errorf("snapshot: decode manifest: %w: %d bytes too many", ErrDamaged, r.Len())
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("snapshot: decode manifest: %w: %v", ErrDamaged, err)
	}
	return m, nil
}

// topicIDs reads the ids of topics, which must ascend so that one manifest has one encoding.
func topicIDs(r *wire.Reader) map[string][16]byte {
	n := r.Count(17)
	if n == 0 {
		return nil
	}
	ids, last := make(map[string][16]byte, n), ""
	for i := range n {
		topic := r.String()
		if i > 0 && topic <= last {
			r.Bytes(-1)
		}
		last = topic
		var id [16]byte
		copy(id[:], r.Bytes(16))
		ids[topic] = id
	}
	return ids
}

func file(r *wire.Reader) File {
	f := File{Name: r.String()}
	switch r.Byte() {
	case 0:
		f.Size = natural(r)
		copy(f.Sum[:], r.Bytes(sha256.Size))
	case 1:
		f.Data = r.Bytes(r.Count(1))
		f.Size, f.Sum = int64(len(f.Data)), sha256.Sum256(f.Data)
	default:
		r.Bytes(-1)
	}
	return f
}

// check refuses what cannot be encoded, and what must not be decoded: names that lead out of the directory they are
// restored into, or of a task that could not have keys.
func (m *Manifest) check() error {
	if err := objects.CheckKey(m.Task().String()); err != nil || strings.Count(m.Task().String(), "/") != 2 {
		return fmt.Errorf("%q is no task", m.Task())
	}
	if m.Partition < 0 || m.Format < 0 || m.Format > math.MaxInt32 {
		return fmt.Errorf("partition %d, format %d", m.Partition, m.Format)
	}
	for _, e := range m.Ends {
		if e.End < 0 {
			return fmt.Errorf("changelog of %s ends at %d", e.Store, e.End)
		}
	}
	for i, f := range m.Files {
		if err := checkName(f.Name); err != nil {
			return err
		}
		if i > 0 && f.Name <= m.Files[i-1].Name {
			return fmt.Errorf("file %q follows %q", f.Name, m.Files[i-1].Name)
		}
		if f.Size < 0 || f.Data != nil && f.Size != int64(len(f.Data)) {
			return fmt.Errorf("file %q has %d bytes", f.Name, f.Size)
		}
	}
	return nil
}

// checkName refuses names that are not of one plain file.
func checkName(name string) error {
	if strings.Contains(name, "/") || objects.CheckKey(name) != nil {
		return fmt.Errorf("%q is no name of a file", name)
	}
	return nil
}

// checked verifies checksum and version and returns the bytes before the checksum. That is looked at first: of damaged
// bytes no version can be told.
func checked(b []byte) ([]byte, error) {
	if len(b) < 5 {
		return nil, fmt.Errorf("snapshot: decode manifest: %w: %d bytes", ErrDamaged, len(b))
	}
	body := b[:len(b)-4]
	if want, have := binary.BigEndian.Uint32(b[len(body):]), checksum(body); want != have {
		return nil, fmt.Errorf("snapshot: decode manifest: %w: checksum %08x, computed %08x", ErrDamaged, want, have)
	}
	if v := int(body[0]); v < VersionMin || v > Version {
		return nil, &VersionError{"manifest", v, VersionMin, Version}
	}
	return body, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// natural reads a number that must fit an int64 and not be negative.
func natural(r *wire.Reader) int64 {
	v := r.Uvarint()
	if v > math.MaxInt64 {
		r.Bytes(-1)
		return 0
	}
	return int64(v)
}
