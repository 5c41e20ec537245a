package changelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/tidemark/tidemark/internal/wire"
)

// ProgressVersion is the newest layout of a progress record this package writes
// and reads; ProgressVersionMin is the oldest it reads.
const (
	ProgressVersion    = 1
	ProgressVersionMin = 1
)

// ProgressKey is the key of every progress record. One key per partition lets
// compaction keep the newest record of a task.
const ProgressKey = "c"

// ErrProgress reports bytes that are not a progress record: too short, a wrong
// checksum, or fields that do not parse. Test with errors.Is.
var ErrProgress = errors.New("not a progress record")

// VersionError reports a format that is newer (or older) than this build reads.
type VersionError struct {
	Format   string // "progress", "metadata", "control"
	Have     int    // the version found
	Min, Max int    // the versions this build understands
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("changelog: %s record has format version %d, this build understands %d to %d", e.Format, e.Have, e.Min, e.Max)
}

// TopicOffset is the next offset to read of one input partition.
type TopicOffset struct {
	Topic     string
	Partition int32
	Offset    int64
}

// StoreEnd is a position in the changelog partition of one store: the next offset.
type StoreEnd struct {
	Store string
	End   int64
}

// TopicID is the id Kafka gave a topic when it was created. A topic that was
// deleted and made again has the same name and another id.
type TopicID struct {
	Topic string
	ID    [16]byte
}

// NoWatermark is the W of a task that has none yet.
const NoWatermark = int64(math.MinInt64)

// Progress is what one commit of one task stands for. It travels in the same
// transaction as the outputs it describes.
type Progress struct {
	// Version of the layout. Zero means ProgressVersion when encoding; decoding sets it.
	Version int
	// Seq counts the commits of the task from 1.
	Seq uint64
	// Writer is the random number of the producer incarnation that committed.
	Writer uint64
	// Time is the wall clock of the commit, in milliseconds since 1970.
	Time int64
	// W is the watermark of the task in milliseconds; NoWatermark for none.
	W int64
	// Offsets holds the next offset of every input partition.
	Offsets []TopicOffset
	// Ends holds a position per changelog: in a progress record the end after the
	// previous commit, in a local progress blob the position to replay from.
	Ends []StoreEnd
	// TopicIDs names the topics the offsets and ends refer to.
	TopicIDs []TopicID
	// Rest holds sections, see Section. Those this build does not know are carried through unread.
	Rest []byte
}

// Append appends the encoding of p to dst. It is deterministic: slices are
// written in the order they have.
//
//	+---------+-----+--------+------+---+-----------+--------+------------+--------+--------+
//	| version | seq | writer | time | W | offsets   | ends   | topic ids  | rest   | crc32c |
//	| 1 byte  | uv  | 8      | sv   | sv| list      | list   | list       | bytes  | 4      |
//	+---------+-----+--------+------+---+-----------+--------+------------+--------+--------+
//	list      = uv count, entries
//	offset    = topic, uv partition, uv offset
//	end       = store, uv end
//	topic id  = topic, 16 bytes
//	topic, store, rest = uv length, bytes
//
// uv is a uvarint, sv a zigzag varint, fixed numbers are big-endian. The
// checksum (Castagnoli) covers everything before it. The layout of a version
// must not change; a new field makes a new version.
func (p *Progress) Append(dst []byte) ([]byte, error) {
	version := p.Version
	if version == 0 {
		version = ProgressVersion
	}
	if version < ProgressVersionMin || version > ProgressVersion {
		return dst, &VersionError{"progress", version, ProgressVersionMin, ProgressVersion}
	}
	for _, o := range p.Offsets {
		if o.Offset < 0 || o.Partition < 0 {
			return dst, fmt.Errorf("changelog: encode progress: input %s/%d at offset %d", o.Topic, o.Partition, o.Offset)
		}
	}
	for _, e := range p.Ends {
		if e.End < 0 {
			return dst, fmt.Errorf("changelog: encode progress: changelog of %s ends at %d", e.Store, e.End)
		}
	}
	start := len(dst)
	dst = append(dst, byte(version))
	dst = wire.AppendUvarint(dst, p.Seq)
	dst = wire.AppendUint64(dst, p.Writer)
	dst = wire.AppendVarint(dst, p.Time)
	dst = wire.AppendVarint(dst, p.W)
	dst = wire.AppendUvarint(dst, uint64(len(p.Offsets)))
	for _, o := range p.Offsets {
		dst = wire.AppendString(dst, o.Topic)
		dst = wire.AppendUvarint(dst, uint64(o.Partition))
		dst = wire.AppendUvarint(dst, uint64(o.Offset))
	}
	dst = wire.AppendUvarint(dst, uint64(len(p.Ends)))
	for _, e := range p.Ends {
		dst = wire.AppendString(dst, e.Store)
		dst = wire.AppendUvarint(dst, uint64(e.End))
	}
	dst = wire.AppendUvarint(dst, uint64(len(p.TopicIDs)))
	for _, t := range p.TopicIDs {
		dst = wire.AppendString(dst, t.Topic)
		dst = append(dst, t.ID[:]...)
	}
	dst = wire.AppendUvarint(dst, uint64(len(p.Rest)))
	dst = append(dst, p.Rest...)
	return binary.BigEndian.AppendUint32(dst, checksum(dst[start:])), nil
}

// DecodeProgress parses a progress record. The result does not alias b. The
// error is ErrProgress for damaged bytes and a *VersionError for a layout this
// build does not know.
func DecodeProgress(b []byte) (*Progress, error) {
	body, err := checked(b, "progress", ProgressVersionMin, ProgressVersion, ErrProgress)
	if err != nil {
		return nil, err
	}
	r := wire.NewReader(body)
	p := &Progress{Version: int(r.Byte())}
	p.Seq = r.Uvarint()
	p.Writer = r.Uint64()
	p.Time = r.Varint()
	p.W = r.Varint()
	for range r.Count(3) {
		p.Offsets = append(p.Offsets, TopicOffset{r.String(), r.Int32(), offset(r)})
	}
	for range r.Count(2) {
		p.Ends = append(p.Ends, StoreEnd{r.String(), offset(r)})
	}
	for range r.Count(17) {
		t := TopicID{Topic: r.String()}
		copy(t.ID[:], r.Bytes(16))
		p.TopicIDs = append(p.TopicIDs, t)
	}
	if n := r.Count(1); n > 0 {
		p.Rest = append([]byte(nil), r.Bytes(n)...)
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("changelog: decode progress: %w: %v", ErrProgress, err)
	}
	if r.Len() != 0 {
		return nil, fmt.Errorf("changelog: decode progress: %w: %d bytes too many", ErrProgress, r.Len())
	}
	return p, nil
}

// Offset returns the next offset of one input partition.
func (p *Progress) Offset(topic string, partition int32) (int64, bool) {
	for _, o := range p.Offsets {
		if o.Topic == topic && o.Partition == partition {
			return o.Offset, true
		}
	}
	return 0, false
}

// End returns the recorded position of a store's changelog.
func (p *Progress) End(store string) (int64, bool) {
	for _, e := range p.Ends {
		if e.Store == store {
			return e.End, true
		}
	}
	return 0, false
}

// TopicID returns the recorded id of a topic.
func (p *Progress) TopicID(topic string) ([16]byte, bool) {
	for _, t := range p.TopicIDs {
		if t.Topic == topic {
			return t.ID, true
		}
	}
	return [16]byte{}, false
}

// checked verifies version and checksum and returns the bytes in between,
// version included. The checksum is looked at first: of damaged bytes no
// version can be told, and the two mistakes have different remedies.
func checked(b []byte, format string, lo, hi int, bad error) ([]byte, error) {
	if len(b) < 5 {
		return nil, fmt.Errorf("changelog: decode %s: %w: %d bytes", format, bad, len(b))
	}
	body := b[:len(b)-4]
	if want, have := binary.BigEndian.Uint32(b[len(body):]), checksum(body); want != have {
		return nil, fmt.Errorf("changelog: decode %s: %w: checksum %08x, computed %08x", format, bad, want, have)
	}
	if v := int(body[0]); v < lo || v > hi {
		return nil, &VersionError{format, v, lo, hi}
	}
	return body, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// offset reads a position, which must fit an int64.
func offset(r *wire.Reader) int64 {
	v := r.Uvarint()
	if v > math.MaxInt64 {
		r.Bytes(-1)
		return 0
	}
	return int64(v)
}
