package watermark

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark/tidemark/internal/wire"
)

const (
	vectorVersion = 1
	notHeard      = 0xff // in the place of a state
)

// Append appends the state of the vector to dst, for the progress record.
//
//	+---------+----+---------------------+
//	| version | W  | writers             |
//	| 1 byte  | sv | uv count, each:     |
//	+---------+----+---------------------+
//	writer = id 4, uv number of tasks, tasks
//	task   = state 1 (255: not heard of, and nothing follows), sv W, sv generation, sv seq
//
// uv is a uvarint, sv a zigzag varint. W, generation and seq of a task are
// differences to the task before it in the record, modulo 2^64: tasks of one
// writer are close to each other. There is no checksum: the record around it
// has one.
func (v *Vector) Append(dst []byte) []byte {
	dst = append(dst, vectorVersion)
	dst = wire.AppendVarint(dst, v.w)
	dst = wire.AppendUvarint(dst, uint64(len(v.writers)))
	last := report{w: v.w}
	for i := range v.writers {
		u := &v.writers[i]
		dst = binary.BigEndian.AppendUint32(dst, u.id)
		dst = wire.AppendUvarint(dst, uint64(len(u.tasks)))
		for k := range u.tasks {
			r := &u.tasks[k]
			if !r.heard {
				dst = append(dst, notHeard)
				continue
			}
			dst = append(dst, byte(r.state))
			dst = wire.AppendVarint(dst, r.w-last.w)
			dst = wire.AppendVarint(dst, int64(r.generation-last.generation))
			dst = wire.AppendVarint(dst, int64(r.seq-last.seq))
			last = *r
		}
	}
	return dst
}

// Restore sets the vector to what Append wrote. Its writers stay those of
// NewVector: the state of others is dropped, and one that has no state is not
// heard of yet, so that W waits for it. The error is ErrState or a
// *VersionError; the vector is then as it was.
func (v *Vector) Restore(b []byte) error {
	r := wire.NewReader(b)
	if version := r.Byte(); version != vectorVersion && r.Err() == nil {
		return &VersionError{"vector state", int(version), vectorVersion, vectorVersion}
	}
	last := report{w: r.Varint()}
	w := last.w
	found := make(map[uint32][]report)
	for range r.Count(5) {
		var id uint32
		if b := r.Bytes(4); b != nil {
			id = binary.BigEndian.Uint32(b)
		}
		tasks := make([]report, r.Count(1))
		for k := range tasks {
			state := r.Byte()
			if state == notHeard {
				continue
			}
			last = report{
				heard: true, state: State(state),
				w:          last.w + r.Varint(),
				generation: last.generation + uint64(r.Varint()),
				seq:        last.seq + uint64(r.Varint()),
			}
			if last.state > Done {
				return fmt.Errorf("watermark: restore a vector: state %d of a task: %w", state, ErrState)
			}
			tasks[k] = last
		}
		found[id] = tasks
	}
	if r.Err() != nil || r.Len() != 0 {
		return fmt.Errorf("watermark: restore a vector: %w", ErrState)
	}
	for i := range v.writers {
		v.writers[i].tasks = found[v.writers[i].id]
	}
	v.w = w
	v.update()
	return nil
}
