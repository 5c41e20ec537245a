package changelog

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/clock"
)

// Sentinels of a restore; the structs that carry the data wrap them.
var (
	// ErrBelowStart: the position lies below the start of the log. Of a compacted topic
	// the records in between may have been deleted keys; of a trimmed one they are expired.
	ErrBelowStart = errors.New("position is below the start of the log")
	// ErrBeyondEnd: the position or the target lies beyond the end of the log. The topic was
	// truncated or made anew.
	ErrBeyondEnd = errors.New("position is beyond the end of the log")
	// ErrTopicGone: the topic does not exist, or no longer under the id the read began with.
	ErrTopicGone = errors.New("topic does not exist")
)

// RangeError says where a position stands against the log. It wraps ErrBelowStart
// or ErrBeyondEnd.
type RangeError struct {
	Topic     string
	Partition int32
	Position  int64 // what was asked for
	Start     int64 // first offset of the log
	End       int64 // high watermark
	Err       error
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("changelog: read %s/%d from %d, log is %d to %d: %v", e.Topic, e.Partition, e.Position, e.Start, e.End, e.Err)
}

func (e *RangeError) Unwrap() error { return e.Err }

// TopicGoneError names a topic that does not exist. It wraps ErrTopicGone.
type TopicGoneError struct {
	Topic string
	Was   [16]byte // the id the caller expected; zero when any would do
	Is    [16]byte // the id of the topic of that name now; zero when there is none
}

func (e *TopicGoneError) Error() string {
	if e.Is != [16]byte{} {
		return fmt.Sprintf("changelog: topic %q was deleted and made again: id was %s, is %s", e.Topic, FormatTopicID(e.Was), FormatTopicID(e.Is))
	}
	return fmt.Sprintf("changelog: topic %q: %v", e.Topic, ErrTopicGone)
}

// Unwrap returns ErrTopicGone.
func (e *TopicGoneError) Unwrap() error { return ErrTopicGone }

// Partition is one partition to read and how far.
type Partition struct {
	Topic     string
	Partition int32
	From      int64 // next offset to apply; 0 or below the log start is an error unless the log starts there
	Target    int64 // position to reach: the high watermark read beforehand
	// TopicID, when not zero, must be the topic's id.
	TopicID [16]byte
}

// ReaderConfig configures a Reader. The zero value of every field but Client is usable.
type ReaderConfig struct {
	// Client holds the options every client of the application is made with: seed
	// brokers, dialer, TLS, SASL. Consumer options in it are ignored.
	Client []kgo.Opt
	// Clock is used for back-off. Default: clock.Real().
	Clock clock.Clock
	// MaxWait is how long the broker holds a fetch that has nothing to return.
	// Default: 100 ms.
	MaxWait time.Duration
	// MaxBytes limits one fetch answer, in bytes. Default: 32 MiB.
	MaxBytes int32
	// MaxPartitionBytes limits one partition's share of an answer, in bytes.
	// Default: 8 MiB.
	MaxPartitionBytes int32
}

// Reader reads changelog partitions read_committed, by position. It owns one
// client, apart from those that process, so that a restore never delays them. A
// Reader may run several Reads at a time.
type Reader struct {
	cfg ReaderConfig
	cl  *kgo.Client
}

// NewReader makes the client; it does not connect yet.
func NewReader(cfg ReaderConfig) (*Reader, error) {
	return newReader(cfg)
}

// Close closes the client. No Read may be running.
func (r *Reader) Close() { r.cl.Close() }
