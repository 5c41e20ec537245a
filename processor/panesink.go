package processor

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/window"
)

// PaneSink writes panes to a topic.
type PaneSink[K, A any] struct {
	Op      Op
	Index   int // among the sub-topology's sinks
	Key     codec.Codec[K]
	Value   codec.Codec[A]
	PassKey bool // the bytes of the key in hand are those of the topic's codec
	Session bool // windows are named by both ends
	// Name appends what a record's key is, from the user's key and the window; nil for the form of Kafka Streams.
	Name  func(dst, key []byte, w window.Bounds) []byte
	Embed bool // JSON objects get the pane as members
}

// Run returns the sink.
func (s PaneSink[K, A]) Run() PaneFunc[K, A] {
	embed := s.Embed && jsonObjects(s.Value)
	name := s.Name
	switch {
	case name != nil:
	case s.Session:
		name = func(dst, key []byte, w window.Bounds) []byte {
			dst = binary.BigEndian.AppendUint64(append(dst, key...), uint64(w.End-1))
			return binary.BigEndian.AppendUint64(dst, uint64(w.Start))
		}
	default:
		name = func(dst, key []byte, w window.Bounds) []byte {
			return binary.BigEndian.AppendUint64(append(dst, key...), uint64(w.Start))
		}
	}
	var headers []Header
	return func(c *Context, p *Pane[K, A]) error {
		c.op = s.Op
		user := c.key
		if !s.PassKey {
			b, err := s.Key.Append(nil, p.Key)
			if err != nil {
				return c.fail(s.Op, StageEncode, err)
			}
			user = nonNil(b)
		}
		key := c.slab.take(name(c.slab.room(), user, p.Bounds))
		var value []byte
		if p.Op != window.OpDelete {
			b, err := s.Value.Append(c.slab.room(), p.Value)
			if err != nil {
				return c.fail(s.Op, StageEncode, err)
			}
			if embed {
				b = embedPane(b, p.Pane, p.Op)
			}
			value = c.slab.take(b)
		}
		headers = append(headers[:0], c.headers...)
		if p.Op != window.OpDelete {
			headers = append(headers, Header{window.PaneHeader, c.slab.take(window.AppendPaneHeader(c.slab.room(), &p.Pane))})
		}
		headers = append(headers, Header{window.BoundsHeader, c.slab.take(window.AppendBoundsHeader(c.slab.room(), p.Bounds))})
		headers = append(headers, Header{window.WatermarkHeader, c.slab.take(window.AppendWatermarkHeader(c.slab.room(), p.Watermark))})
		if p.Op != 0 {
			headers = append(headers, Header{window.OpHeader, opHeaders[p.Op]})
		}
		before := c.headers
		c.headers = headers
		err := c.emitTo(s.Op, s.Index, user, key, value)
		c.headers = before
		return err
	}
}

// opHeaders are the values of the header of each operation.
var opHeaders = [...][]byte{
	window.OpRetract: window.AppendOpHeader(nil, window.OpRetract),
	window.OpAssert:  window.AppendOpHeader(nil, window.OpAssert),
	window.OpDelete:  window.AppendOpHeader(nil, window.OpDelete),
}

// jsonObjects reports whether a codec writes JSON, so that an object can be given more members.
func jsonObjects[A any](c codec.Codec[A]) bool {
	return strings.HasPrefix(c.Schema(), "json:")
}

// embedPane adds the members that describe a pane to a JSON object. Other values stay as they are.
func embedPane(b []byte, p window.Pane, op window.Op) []byte {
	end := bytes.LastIndexByte(b, '}')
	if len(b) == 0 || b[0] != '{' || end < 0 {
		return b
	}
	empty := len(bytes.TrimSpace(b[1:end])) == 0
	b = b[:end]
	if !empty {
		b = append(b, ',')
	}
	b = append(b, `"window_start":`...)
	b = strconv.AppendInt(b, p.Start, 10)
	b = append(b, `,"window_end":`...)
	b = strconv.AppendInt(b, p.End, 10)
	b = append(b, `,"watermark":`...)
	b = strconv.AppendInt(b, p.Watermark, 10)
	b = append(b, `,"pane":{"timing":"`...)
	b = append(b, p.Timing.String()...)
	b = append(b, `","index":`...)
	b = strconv.AppendInt(b, int64(p.Index), 10)
	b = append(b, `,"is_first":`...)
	b = strconv.AppendBool(b, p.First)
	b = append(b, `,"is_last":`...)
	b = strconv.AppendBool(b, p.Last)
	if op != 0 {
		b = append(b, `,"op":"`...)
		b = append(append(b, op.String()...), '"')
	}
	return append(b, `}}`...)
}
