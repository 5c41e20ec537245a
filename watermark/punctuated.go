package watermark

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"
)

// WatermarkHeader is the usual header key of a watermark exported with the
// records of a topic that other applications read.
const WatermarkHeader = "tm-w"

// AppendHeader appends the header value of an exported watermark: W in eight
// bytes, big-endian, as Kafka's serializer of longs writes it.
func AppendHeader(dst []byte, w int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(w)) }

// ParseHeader reads what AppendHeader wrote; false if the bytes are no such value.
func ParseHeader(b []byte) (int64, bool) {
	if len(b) != 8 {
		return Unknown, false
	}
	return int64(binary.BigEndian.Uint64(b)), true
}

// punctuated takes W from the records that carry one.
type punctuated[V any] struct {
	position
	name string
	fn   func(V) (time.Time, bool)
}

func (g *punctuated[V]) Observe(r *Record) {
	v, ok := r.Value.(V)
	if !ok && r.Value != nil { // nil is the zero value of an interface type V
		panic(fmt.Sprintf("watermark: punctuated %s: value of type %T where %v is due", g.name, r.Value, reflect.TypeFor[V]()))
	}
	if t, ok := g.fn(v); ok {
		g.w = max(g.w, millis(t))
	}
}

func (g *punctuated[V]) Watermark() int64 { return g.w }

func (g *punctuated[V]) Append(dst []byte) []byte { return g.append(dst) }

func (g *punctuated[V]) Restore(b []byte) error {
	_, err := g.restore(b)
	return err
}

// fromHeader takes W from a header. Records without it, or with a value that is
// no watermark, leave W where it is.
type fromHeader struct {
	position
	key string
}

func (g *fromHeader) Observe(r *Record) {
	if r.Header == nil {
		return
	}
	if b, ok := r.Header(g.key); ok {
		if w, ok := ParseHeader(b); ok {
			g.w = max(g.w, w)
		}
	}
}

func (g *fromHeader) Watermark() int64 { return g.w }

func (g *fromHeader) Append(dst []byte) []byte { return g.append(dst) }

func (g *fromHeader) Restore(b []byte) error {
	_, err := g.restore(b)
	return err
}
