package tidemarktest

import (
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"strings"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/topology"
)

// Form is how the keys and values of a topic or store stand in a history: text as it is, everything else as JSON
// without spaces. null is null, "" the empty text, and x:00ff stands for bytes as they are.
type Form struct {
	name       string
	key, value text
	err        error
}

// text is the form of one type.
type text struct {
	parse  func(s string) ([]byte, error)
	format func(b []byte) string
}

// TopicForm returns the form of a topic, or of a store by its id. Its codecs are those of the types unless with says
// otherwise. What has no form given is text to int64.
func TopicForm[K, V any](name string, with ...topology.Codecs[K, V]) Form {
	c, err := codecs(with)
	if err != nil {
		return Form{name: name, err: fmt.Errorf("tidemarktest: form of %s: %w", name, err)}
	}
	return Form{name: name, key: textOf(c.Key), value: textOf(c.Value)}
}

func textOf[T any](c codec.Codec[T]) text {
	return text{
		parse: func(s string) ([]byte, error) {
			switch {
			case s == "null":
				return nil, nil
			case s == `""`:
				s = ""
			case strings.HasPrefix(s, "x:"):
				b, err := hex.DecodeString(s[2:])
				if err != nil {
					return nil, fmt.Errorf("tidemarktest: %w", err)
				}
				return b, nil
			}
			var v T
			if str, ok := any(&v).(*string); ok {
				*str = s
			} else if err := json.Unmarshal([]byte(s), &v); err != nil {
				return nil, fmt.Errorf("tidemarktest: %q is not a %T: %w", s, v, err)
			}
			b, err := c.Append([]byte{}, v)
			if err != nil {
				return nil, fmt.Errorf("tidemarktest: %w", err)
			}
			return b, nil
		},
		format: func(b []byte) string {
			if b == nil {
				return "null"
			}
			v, err := c.Decode(b)
			if err != nil {
				return "x:" + hex.EncodeToString(b)
			}
			if s, ok := any(v).(string); ok {
				if s == "" {
					return `""`
				}
				return s
			}
			if b, err = c.JSON(nil, b); err != nil {
				return "x:" + hex.EncodeToString(b)
			}
			return string(b)
		},
	}
}
