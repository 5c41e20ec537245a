package watermark

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tidemark/tidemark/internal/wire"
)

const (
	controlMagic   = 0x54 // 'T'
	controlVersion = 1
	// maxTasks bounds what a record may claim, far above what a broker can hold.
	maxTasks = 1 << 20
	// Sizes of the smallest record and entry.
	minControl = 4 + 1 + 4 + 1 + 1 + 1 + 4
	minEntry   = 4
)

// Append appends the encoding of c to dst.
//
//	+-------+---------+------+-------+-------+--------+-------+------------+---------+--------+
//	| magic | version | kind | flags | epoch | writer | tasks | generation | entries | crc32c |
//	| 1     | 1       | 1    | 1     | uv    | 4      | uv    | uv         | list    | 4      |
//	+-------+---------+------+-------+-------+--------+-------+------------+---------+--------+
//	list  = uv count, entries
//	entry = uv task, state 1, sv W, uv seq
//
// uv is a uvarint, sv a zigzag varint, fixed numbers are big-endian. The W of
// the entries after the first is the difference to that of the first, modulo
// 2^64. The checksum (Castagnoli) covers everything before it. Magic, version,
// kind, flags and checksum keep their places in every version, so that an old
// reader can tell what it may skip.
func (c *Control) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, controlMagic, controlVersion, byte(c.Kind), c.Flags)
	dst = wire.AppendUvarint(dst, c.Epoch)
	dst = binary.BigEndian.AppendUint32(dst, c.Writer)
	dst = wire.AppendUvarint(dst, uint64(c.Tasks))
	dst = wire.AppendUvarint(dst, c.Generation)
	dst = wire.AppendUvarint(dst, uint64(len(c.Entries)))
	var first int64
	for i := range c.Entries {
		e := &c.Entries[i]
		dst = wire.AppendUvarint(dst, uint64(e.Task))
		dst = append(dst, byte(e.State))
		dst = wire.AppendVarint(dst, e.W-first)
		dst = wire.AppendUvarint(dst, e.Seq)
		if i == 0 {
			first = e.W
		}
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], crc32.MakeTable(crc32.Castagnoli)))
}

// ParseControl reads what Append wrote. The result does not alias b. The error
// is ErrControl for damaged bytes, and a *VersionError for a version or a kind
// that this build does not know and may not skip.
func ParseControl(b []byte) (*Control, error) {
	if len(b) < minControl || b[0] != controlMagic {
		return nil, fmt.Errorf("watermark: %d bytes: %w", len(b), ErrControl)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(b[len(body):]) {
		return nil, fmt.Errorf("watermark: checksum: %w", ErrControl)
	}
	version, c := body[1], &Control{Kind: Kind(body[2]), Flags: body[3]}
	if version != controlVersion || c.Kind != KindWatermark {
		switch {
		case c.Ignorable():
			c.unknown = true
			return c, nil
		case version != controlVersion:
			return nil, &VersionError{"control record", int(version), controlVersion, controlVersion}
		}
		return nil, &VersionError{"control record kind", int(c.Kind), int(KindWatermark), int(KindWatermark)}
	}
	r := wire.NewReader(body[4:])
	c.Epoch = r.Uvarint()
	if w := r.Bytes(4); w != nil {
		c.Writer = binary.BigEndian.Uint32(w)
	}
	tasks := r.Uvarint()
	c.Generation = r.Uvarint()
	n := r.Count(minEntry)
	if r.Err() != nil || tasks > maxTasks {
		return nil, fmt.Errorf("watermark: head: %w", ErrControl)
	}
	c.Tasks = uint32(tasks)
	c.Entries = make([]Entry, 0, n)
	var first int64
	for range n {
		task, state, w, seq := r.Uvarint(), State(r.Byte()), first+r.Varint(), r.Uvarint()
		if r.Err() != nil || task >= tasks || state > Done {
			return nil, fmt.Errorf("watermark: entry %d of %d: %w", len(c.Entries), n, ErrControl)
		}
		if len(c.Entries) == 0 {
			first = w
		}
		c.Entries = append(c.Entries, Entry{uint32(task), state, w, seq})
	}
	if r.Len() != 0 {
		return nil, fmt.Errorf("watermark: %d bytes too many: %w", r.Len(), ErrControl)
	}
	return c, nil
}
