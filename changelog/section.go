package changelog

import "github.com/tidemark/tidemark/internal/wire"

// Sections of a progress record: what parts of the engine keep in it beyond the positions. Numbers are never used again.
const (
	SectionClocks    byte = 1 // the event time of the task's operators
	SectionTrims     byte = 2 // up to where the changelogs of windowed stores may be trimmed
	SectionSnapshots byte = 3 // the snapshots of the task that are retained, see package snapshot
)

// The sections lie in Rest one behind the other: number, 1 byte | uv length | bytes.

// Section returns the bytes of a section, nil if there is none.
func (p *Progress) Section(number byte) []byte {
	r := wire.NewReader(p.Rest)
	for r.Len() > 0 && r.Err() == nil {
		n := r.Byte()
		b := r.Bytes(r.Count(1))
		if r.Err() == nil && n == number {
			return b
		}
	}
	return nil
}

// SetSection replaces a section; the others keep their order.
func (p *Progress) SetSection(number byte, b []byte) {
	var out []byte
	r := wire.NewReader(p.Rest)
	for r.Len() > 0 && r.Err() == nil {
		n := r.Byte()
		old := r.Bytes(r.Count(1))
		if n != number && r.Err() == nil {
			out = wire.AppendString(append(out, n), old)
		}
	}
	p.Rest = wire.AppendString(append(out, number), b)
}
