package tidemarktest

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/window"
)

// Record is one committed record of an output topic.
type Record[K, V any] struct {
	Key   K
	Value V
	// Null is set if the value is null: Value is then the zero value.
	Null      bool
	Time      time.Time // timestamp of the record
	Headers   []processor.Header
	Partition int
	Offset    int64
	// Pane says which result of which window the record is; nil if it is none. Key is then the key without the window.
	Pane *window.Pane
	// Op is what the record does to results given before, 0 for one that stands for itself.
	Op window.Op
}

// OutputTopic reads what the app has committed to a topic.
type OutputTopic[K, V any] struct {
	d     *Driver
	topic string
	c     topology.Codecs[K, V]
	next  []int64 // by partition
}

// Output returns an output topic, which is read from its start. Its codecs are those of the types unless with says
// otherwise. Several readers of one topic do not disturb each other.
func Output[K, V any](d *Driver, topic string, with ...topology.Codecs[K, V]) *OutputTopic[K, V] {
	d.helper()
	l := d.c.logs[topic]
	if l == nil {
		d.fatal(fmt.Errorf("tidemarktest: the topology does not know topic %q", topic))
	}
	c, err := codecs(with)
	if err != nil {
		d.fatal(fmt.Errorf("tidemarktest: output %s: %w", topic, err))
	}
	return &OutputTopic[K, V]{d, topic, c, make([]int64, len(l.parts))}
}

// Read returns the next record, and false if there is none. Partitions are read one after the other.
func (o *OutputTopic[K, V]) Read() (r Record[K, V], ok bool) {
	o.d.helper()
	for p := range o.next {
		if o.next[p] < int64(len(o.d.c.logs[o.topic].parts[p].records)) {
			r, err := o.decode(p, o.next[p])
			if err != nil {
				o.d.fatal(fmt.Errorf("tidemarktest: output %s/%d offset %d: %w", o.topic, p, o.next[p], err))
			}
			o.next[p]++
			return r, true
		}
	}
	return r, false
}

// ReadAll returns what was committed since the last read. Records of one partition are in their order.
func (o *OutputTopic[K, V]) ReadAll() []Record[K, V] {
	o.d.helper()
	var list []Record[K, V]
	for {
		r, ok := o.Read()
		if !ok {
			return list
		}
		list = append(list, r)
	}
}

// Empty reports whether everything committed has been read.
func (o *OutputTopic[K, V]) Empty() bool {
	for p := range o.next {
		if o.next[p] < int64(len(o.d.c.logs[o.topic].parts[p].records)) {
			return false
		}
	}
	return true
}

func (o *OutputTopic[K, V]) decode(p int, offset int64) (r Record[K, V], err error) {
	in := &o.d.c.logs[o.topic].parts[p].records[offset]
	r.Time, r.Headers, r.Partition, r.Offset, r.Null = time.UnixMilli(in.time).UTC(), in.headers, p, offset, in.value == nil
	if r.Pane, r.Op, err = paneOf(in); err != nil {
		return r, err
	}
	if key := in.key; key != nil {
		if r.Pane != nil && sessionKey(key, r.Pane.Bounds) {
			// A key of 8 bytes may look as if its window was a session.
			if r.Key, err = o.c.Key.Decode(key[:len(key)-16]); err != nil {
				r.Key, err = o.c.Key.Decode(key[:len(key)-8])
			}
		} else {
			r.Key, err = o.c.Key.Decode(userKey(in, r.Pane))
		}
		if err != nil {
			return r, fmt.Errorf("decode the key: %w", err)
		}
	}
	if !r.Null {
		if r.Value, err = o.c.Value.Decode(in.value); err != nil {
			return r, fmt.Errorf("decode the value: %w", err)
		}
	}
	return r, nil
}

// header returns the last header with a key.
func (r *record) header(key string) ([]byte, bool) {
	for i := len(r.headers) - 1; i >= 0; i-- {
		if r.headers[i].Key == key {
			return r.headers[i].Value, true
		}
	}
	return nil, false
}

// paneOf reads the headers that describe a pane. It returns nil if the record is none.
func paneOf(r *record) (*window.Pane, window.Op, error) {
	var op window.Op
	if b, ok := r.header(window.OpHeader); ok {
		var err error
		if op, err = window.ParseOpHeader(b); err != nil {
			return nil, 0, err
		}
	}
	b, ok := r.header(window.BoundsHeader)
	if !ok {
		return nil, op, nil
	}
	p := &window.Pane{MaxTime: r.time}
	var err error
	if p.Bounds, err = window.ParseBoundsHeader(b); err != nil {
		return nil, op, err
	}
	if b, ok := r.header(window.WatermarkHeader); ok {
		if p.Watermark, err = window.ParseWatermarkHeader(b); err != nil {
			return nil, op, err
		}
	}
	if b, ok := r.header(window.PaneHeader); ok {
		err = window.ParsePaneHeader(p, b)
	}
	return p, op, err
}

// userKey takes the window off the key of a pane.
func userKey(r *record, p *window.Pane) []byte {
	switch n := len(r.key); {
	case p == nil || n < 8:
		return r.key
	case sessionKey(r.key, p.Bounds):
		return r.key[:n-16]
	default:
		return r.key[:n-8]
	}
}

// sessionKey reports whether the key of a pane ends with the window's last moment and its start.
func sessionKey(key []byte, b window.Bounds) bool {
	n := len(key)
	return n >= 16 && int64(binary.BigEndian.Uint64(key[n-16:])) == b.Last() && int64(binary.BigEndian.Uint64(key[n-8:])) == b.Start
}
