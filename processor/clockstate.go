package processor

import (
	"errors"
	"fmt"

	"github.com/tidemark/tidemark/internal/wire"
)

// The event time of a task as it travels in the progress record:
//
//	+------------+---------------------------------------------+-------------------------------------------+
//	| version, 1 | sources: name, kind, seen, idle, state      | nodes: operator, watermark, cursor        |
//	+------------+---------------------------------------------+-------------------------------------------+
//
// Both parts are lists behind their count; times are zigzag varints, the rest is length and bytes. Sources and operators
// are found by name, so that a topology may change around them. The states of generators are alike, so a topic may change
// its strategy as well.
const clocksVersion = 1

var errClocks = errors.New("bad event time section")

// AppendClocks appends the event time of the task: generators, upstream vectors, watermarks and unfinished firings.
func (t *Task) AppendClocks(dst []byte) []byte {
	dst = append(dst, clocksVersion)
	n := 0
	for _, k := range t.clocks {
		if k != nil && (k.gen != nil || k.vec != nil) {
			n++
		}
	}
	dst = wire.AppendUvarint(dst, uint64(n))
	var buf []byte
	for _, k := range t.clocks {
		if k == nil || k.gen == nil && k.vec == nil {
			continue
		}
		dst = wire.AppendString(dst, k.Name)
		dst = wire.AppendString(dst, k.kind())
		dst = wire.AppendVarint(dst, k.seen)
		dst = append(dst, 0)
		if k.mark.Idle {
			dst[len(dst)-1] = 1
		}
		if k.gen != nil {
			buf = k.gen.Append(buf[:0])
		} else {
			buf = k.vec.Append(buf[:0])
		}
		dst = wire.AppendString(dst, buf)
	}
	dst = wire.AppendUvarint(dst, uint64(len(t.nodes)))
	for _, n := range t.nodes {
		dst = wire.AppendString(dst, t.c.operators[n.op])
		dst = wire.AppendVarint(dst, n.w)
		buf = buf[:0]
		if n.work != nil {
			buf = n.work.cursor(buf)
		}
		dst = wire.AppendString(dst, buf)
	}
	return dst
}

// kind says what the persisted state of a clock belongs to.
func (k *Clock) kind() string {
	if k.gen != nil {
		return "topic"
	}
	return "upstream"
}

// restoreClocks takes back what AppendClocks has written.
func (t *Task) restoreClocks(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r := wire.NewReader(b)
	if v := r.Byte(); v != clocksVersion {
		return fmt.Errorf("processor: restore event time: %w: version %d", errClocks, v)
	}
	for range r.Count(4) {
		name, kind := r.String(), r.String()
		seen, idle := r.Varint(), r.Byte() == 1
		state := r.Bytes(r.Count(1))
		for _, k := range t.clocks {
			if k == nil || k.Name != name || k.gen == nil && k.vec == nil || k.kind() != kind {
				continue
			}
			if err := k.restore(state); err != nil {
				return fmt.Errorf("processor: restore event time of %s: %w", name, err)
			}
			k.seen = seen
			if k.vec == nil {
				k.wasIdle = idle // to be proven again: records may have come since
			}
		}
	}
	for range r.Count(3) {
		name, w := r.String(), r.Varint()
		cursor := r.Bytes(r.Count(1))
		for _, n := range t.nodes {
			if t.c.operators[n.op] != name {
				continue
			}
			n.w, n.target = w, w
			if n.work != nil {
				if err := n.work.resume(cursor); err != nil {
					return fmt.Errorf("processor: restore %s: %w", name, err)
				}
			}
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("processor: restore event time: %w: %v", errClocks, err)
	}
	// An advance that a commit has interrupted goes on before the first record: what it has shown is no longer open.
	t.moved = true
	return nil
}

func (k *Clock) restore(state []byte) error {
	if k.gen != nil {
		if err := k.gen.Restore(state); err != nil {
			return err
		}
		k.mark.W = k.gen.Watermark()
		return nil
	}
	if err := k.vec.Restore(state); err != nil {
		return err
	}
	if k.mark.W, k.mark.Idle = k.vec.Watermark(); k.mark.Idle {
		k.mark.Seen = k.vec.Max()
	}
	return nil
}
