package processor

import (
	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// SourceConfig describes how the records of one topic enter a task.
type SourceConfig[K, V any] struct {
	Op    Op             // its operator
	Key   codec.Codec[K] // of the topic
	Value codec.Codec[V] // of the topic
	// NeedKey and NeedValue say whether an operator downstream uses the typed key or value. What none uses is not
	// decoded, and hence not checked either.
	NeedKey, NeedValue bool
	Stream             Func[K, V]         // what reads the topic as a stream; nil if nothing does
	Tables             []TableInput[K, V] // what reads it as a table
	// Time returns the event time of a record in ms and whether it has one; nil takes the record's timestamp. It is
	// called once per record, before anything else sees the record.
	Time func(c *Context, k K, v V) (int64, bool, error)
	// Marked says that the records of a repartition carry what they do to earlier results, and Origin that they carry the
	// watermark their first source partition had, in headers.
	Marked, Origin bool
	// Clock is the source's, nil if nothing behind it asks for the time.
	Clock *Clock
}

// NewSource returns the entry of a source. A null key reaches a stream as the key type's null, or as its zero value if
// it has none (Context.KeyBytes tells them apart), and is an error for a table. A null value reaches a stream as the
// value type's null and is an error if it has none; for a table it deletes the key.
func NewSource[K, V any](s SourceConfig[K, V]) Source {
	nullKey, nullValue := nullOf(s.Key), nullOf(s.Value)
	settings := (*watermark.Settings)(nil)
	if s.Clock != nil {
		settings = s.Clock.Settings
	}
	return func(c *Context) error {
		var k K
		var v V
		var err error
		if s.Marked {
			c.change = takeOp(c)
		}
		if s.Origin {
			c.origin = takeOrigin(c)
		}
		switch {
		case c.key == nil:
			if len(s.Tables) > 0 {
				return c.fail(s.Op, StageNullKey, ErrNull)
			}
			if nullKey != nil {
				k = nullKey.Null()
			}
		case s.NeedKey:
			if k, err = s.Key.Decode(c.key); err != nil {
				return c.fail(s.Op, StageDecodeKey, err)
			}
		}
		switch {
		case c.value == nil:
			if nullValue != nil {
				v = nullValue.Null()
			} else if s.Stream != nil {
				return c.fail(s.Op, StageNullValue, ErrNull)
			}
		case s.NeedValue:
			if v, err = s.Value.Decode(c.value); err != nil {
				return c.fail(s.Op, StageDecodeValue, err)
			}
		}
		if settings != nil || s.Time != nil {
			if ok, err := s.stamp(c, settings, k, v); err != nil || !ok {
				return err
			}
		}
		for _, t := range s.Tables {
			if err := t(c, k, v, c.value != nil); err != nil {
				return err
			}
		}
		if s.Stream == nil {
			return nil
		}
		return s.Stream(c, k, v)
	}
}

// noTimestamp is the timestamp of a Kafka record that has none. An event time of -1 from a record's content is a time
// like any other.
const noTimestamp = -1

// stamp finds the event time of the record in hand. It reports false for a record that was refused for it.
func (s *SourceConfig[K, V]) stamp(c *Context, set *watermark.Settings, k K, v V) (bool, error) {
	time, ok := c.time, c.time != noTimestamp
	if s.Time != nil {
		c.op = s.Op
		var err error
		if time, ok, err = s.Time(c, k, v); err != nil {
			return false, c.fail(s.Op, StageUser, err)
		}
	}
	if set == nil {
		if ok {
			c.time = time
		}
		return true, nil
	}
	if !ok {
		switch {
		case set.Missing == watermark.Late:
			c.unobserved = true
			return false, c.refuse(s.Op, Late{Reason: BadTime, Watermark: s.Clock.mark.W})
		case set.Missing == watermark.PartitionTime && s.Clock.seen != watermark.Unknown:
			time = s.Clock.seen
		default:
			return false, c.fail(s.Op, StageTimestamp, ErrNoTimestamp)
		}
	}
	c.time = time
	if set.MaxFuture > 0 && time > satAdd(c.Now(), set.MaxFuture.Milliseconds()) {
		c.unobserved = true
		return false, c.refuse(s.Op, Late{Reason: Future, Watermark: s.Clock.mark.W})
	}
	if set.NeedsValue {
		c.observed = v
	}
	return true, nil
}

// takeOp takes the header of what a record does to earlier results off the record in hand.
func takeOp(c *Context) window.Op {
	if !hasOp(c.headers) {
		return 0
	}
	last := len(c.headers) - 1
	op, err := window.ParseOpHeader(c.headers[last].Value)
	if err != nil {
		return 0
	}
	c.headers = c.headers[:last]
	return op
}

// takeOrigin takes the watermark of its first source partition off the record in hand. A record without it is never too
// late by that measure.
func takeOrigin(c *Context) int64 {
	last := len(c.headers) - 1
	if last < 0 || c.headers[last].Key != watermark.WatermarkHeader {
		return watermark.Unknown
	}
	w, ok := watermark.ParseHeader(c.headers[last].Value)
	if !ok {
		return watermark.Unknown
	}
	c.headers = c.headers[:last]
	return w
}
