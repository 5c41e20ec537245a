package processor

import "github.com/tidemark/tidemark/codec"

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
}

// NewSource returns the entry of a source. A null key reaches a stream as the key type's null, or as its zero value if
// it has none (Context.KeyBytes tells them apart), and is an error for a table. A null value reaches a stream as the
// value type's null and is an error if it has none; for a table it deletes the key.
func NewSource[K, V any](s SourceConfig[K, V]) Source {
	nullKey, nullValue := nullOf(s.Key), nullOf(s.Value)
	return func(c *Context) error {
		var k K
		var v V
		var err error
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
