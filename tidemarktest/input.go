package tidemarktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/topology"
)

// InputTopic writes records into a topic the topology reads.
type InputTopic[K, V any] struct {
	d     *Driver
	topic string
	c     topology.Codecs[K, V]
}

// Input returns an input topic. Its codecs are those of the types unless with says otherwise.
func Input[K, V any](d *Driver, topic string, with ...topology.Codecs[K, V]) *InputTopic[K, V] {
	d.helper()
	if d.c.logs[topic] == nil {
		d.fatal(fmt.Errorf("tidemarktest: the topology does not know topic %q", topic))
	}
	c, err := codecs(with)
	if err != nil {
		d.fatal(fmt.Errorf("tidemarktest: input %s: %w", topic, err))
	}
	return &InputTopic[K, V]{d, topic, c}
}

func codecs[K, V any](with []topology.Codecs[K, V]) (c topology.Codecs[K, V], err error) {
	if len(with) > 0 {
		c = with[0]
	}
	if c.Key == nil {
		if c.Key, err = codec.For[K](); err != nil {
			return c, err
		}
	}
	if c.Value == nil {
		c.Value, err = codec.For[V]()
	}
	return c, err
}

// SendOption says more about a record to send.
type SendOption func(*sending)

type sending struct {
	at        int64
	given     bool
	partition int // -1: by key
	headers   []processor.Header
}

// At gives a record its timestamp. Without it the timestamp is where the clock stands.
func At(t time.Time) SendOption { return AtMillis(t.UnixMilli()) }

// AtMillis is At in ms since the epoch. -1 is what a record without timestamp has.
func AtMillis(ms int64) SendOption {
	return func(s *sending) { s.at, s.given = ms, true }
}

// To sends a record to a partition of the caller's choice. Without it the key decides, as it does for Kafka's clients; a
// record without key goes to partition 0.
func To(partition int) SendOption { return func(s *sending) { s.partition = partition } }

// WithHeader adds a header to a record.
func WithHeader(key string, value []byte) SendOption {
	return func(s *sending) { s.headers = append(s.headers, processor.Header{Key: key, Value: value}) }
}

// Send writes one record; the app processes it at once. A record that cannot be processed ends the test, unless
// Options.DeadLetter is set.
func (in *InputTopic[K, V]) Send(k K, v V, opts ...SendOption) {
	in.d.helper()
	in.d.check(in.TrySend(k, v, opts...))
}

// TrySend is Send that returns the error, usually a *RecordError, instead of ending the test. Nothing can be done with
// the driver afterwards but to look at what was committed.
func (in *InputTopic[K, V]) TrySend(k K, v V, opts ...SendOption) error {
	key, err := encode(in.c.Key, k)
	if err != nil {
		return fmt.Errorf("tidemarktest: input %s: encode the key: %w", in.topic, err)
	}
	value, err := encode(in.c.Value, v)
	if err != nil {
		return fmt.Errorf("tidemarktest: input %s: encode the value: %w", in.topic, err)
	}
	return in.SendBytes(key, value, opts...)
}

// encode returns nil for a value that stands for Kafka's null, else its bytes, which are not nil.
func encode[T any](c codec.Codec[T], v T) ([]byte, error) {
	if n, ok := c.(codec.Nullable[T]); ok && n.IsNull(v) {
		return nil, nil
	}
	return c.Append([]byte{}, v)
}

// SendBytes writes a record as it is; nil is null.
func (in *InputTopic[K, V]) SendBytes(key, value []byte, opts ...SendOption) error {
	s := sending{partition: -1}
	for _, o := range opts {
		o(&s)
	}
	c := in.d.c
	if !s.given {
		s.at = c.now
	}
	return c.alive(func() error {
		return c.send(in.topic, s.partition, record{s.at, key, value, slices.Clone(s.headers)})
	})
}

// Delete writes a null value for a key.
func (in *InputTopic[K, V]) Delete(k K, opts ...SendOption) {
	in.d.helper()
	key, err := encode(in.c.Key, k)
	in.d.check(err)
	in.d.check(in.SendBytes(key, nil, opts...))
}

// send puts a record into a topic and processes what follows.
func (c *cluster) send(topic string, partition int, r record) error {
	l := c.logs[topic]
	if l == nil {
		return fmt.Errorf("tidemarktest: the topology does not know topic %q", topic)
	}
	switch {
	case partition >= len(l.parts):
		return fmt.Errorf("tidemarktest: topic %s has no partition %d", topic, partition)
	case partition < 0 && r.key == nil:
		partition = 0
	case partition < 0:
		partition = int(processor.PartitionOf(r.key, int32(len(l.parts))))
	}
	l.add(int32(partition), r)
	return c.settle()
}
