package changelog

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
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

// FromStart as Partition.From reads from the first offset of the log, whatever it is.
const FromStart = int64(-2)

// Partition is one partition to read and how far.
type Partition struct {
	Topic     string
	Partition int32
	From      int64 // next offset to apply, or FromStart
	Target    int64 // position to reach: the high watermark read beforehand
	// TopicID, when not zero, must be the topic's id.
	TopicID [16]byte
}

// ReaderConfig configures a Reader. The zero value of every field but Client is usable.
type ReaderConfig struct {
	// Client holds the options every client of the application is made with: seed
	// brokers, dialer, TLS, SASL. It must not hold a group or topics to consume.
	Client []kgo.Opt
	// Clock is used for back-off and bounds. Default: clock.Real().
	Clock clock.Clock
	// MaxWait is the longest pause before a partition that had nothing new is asked
	// again; pauses begin at 2 ms. Default: 20 ms.
	MaxWait time.Duration
	// MaxBytes limits one answer of one partition, in bytes as stored (compressed).
	// A batch larger than this is still read. Default: 1 MiB: larger answers do not stay
	// in the processor's cache between decoding and the sink.
	MaxBytes int32
	// Answers is the number of answers the Reader keeps in memory at a time, over all
	// its Reads. Default: 4.
	Answers int
	// Patience is how long a topic may be unknown to the cluster, or its end lie below
	// the target, before Read takes it for the truth. Default: 5 s.
	Patience time.Duration
	// Outage is how long a partition may go without any answer before Read gives up.
	// Default: 2 min.
	Outage time.Duration
}

// Reader reads changelog partitions read_committed, by position. It owns one
// client, apart from those that process, so that a restore never delays them. It may
// run several Reads at a time, each on its caller's goroutine.
//
// It sends plain fetch requests instead of consuming: an answer then always tells the
// next offset and the last stable offset, also when it holds no record, and a
// consuming client tells neither.
type Reader struct {
	cfg   ReaderConfig
	cl    *kgo.Client
	slots chan *buffers // one per answer in memory

	mu     sync.Mutex
	topics map[string]topicMeta
	active int // Reads under way
}

// NewReader makes the client; it does not connect yet.
func NewReader(cfg ReaderConfig) (*Reader, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 20*time.Millisecond)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 1<<20)
	cfg.Answers = cmp.Or(cfg.Answers, 4)
	cfg.Patience = cmp.Or(cfg.Patience, 5*time.Second)
	cfg.Outage = cmp.Or(cfg.Outage, 2*time.Minute)
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		return nil, fmt.Errorf("changelog: make the restore client: %w", err)
	}
	r := &Reader{cfg: cfg, cl: cl, slots: make(chan *buffers, cfg.Answers), topics: make(map[string]topicMeta)}
	for range cfg.Answers {
		r.slots <- newBuffers()
	}
	return r, nil
}

// Close closes the client. No Read may be running.
func (r *Reader) Close() { r.cl.Close() }
