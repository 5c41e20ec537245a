package changelog

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answer is one decoded fetch of one partition.
type answer struct {
	i       int
	records []*kgo.Record // committed data records from the asked offset on
	next    int64         // the offset to ask for next
	stable  int64         // last stable offset at the time of the answer
	end     int64         // high watermark
	start   int64         // log start
	empty   bool          // the answer held no batch at all
	memory  *buffers      // what records lie in
}

// errThrottled is an answer without the partition: a broker that enforces a quota
// returns no partitions at all. It says nothing about the log.
var errThrottled = errors.New("the broker left the partition out of its answer")

// errStuck is an answer with bytes in it that hold no whole batch at the offset.
var errStuck = errors.New("the answer holds no complete batch at this offset")

// fetch asks the leader for the records of one partition from an offset on. It never
// makes the broker wait for records: a fetch that waits would hold up every other one
// on the connection.
func (r *Reader) fetch(ctx context.Context, topic string, id [16]byte, partition int32, from leader, offset int64, memory *buffers) (answer, error) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = -1
	req.MaxWaitMillis = 0
	req.MinBytes = 0
	// The partition's own limit is the one that counts. The in-process broker leaves the
	// list of aborted transactions out of an answer that the request's limit cuts short.
	req.MaxBytes = math.MaxInt32
	req.IsolationLevel = readCommitted
	req.SessionID = 0
	req.SessionEpoch = -1 // no fetch session: every request is complete
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	t.TopicID = id
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition = partition
	p.CurrentLeaderEpoch = from.epoch
	p.FetchOffset = offset
	p.LastFetchedEpoch = -1
	p.LogStartOffset = -1
	p.PartitionMaxBytes = r.cfg.MaxBytes
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)

	kresp, err := r.cl.Broker(from.broker).Request(ctx, req)
	if err != nil {
		return answer{}, err
	}
	resp := kresp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return answer{}, err
	}
	if len(resp.Topics) == 0 || len(resp.Topics[0].Partitions) == 0 {
		return answer{}, errThrottled
	}
	rp := &resp.Topics[0].Partitions[0]
	if rp.Partition != partition || (resp.Version >= 13 && resp.Topics[0].TopicID != id) {
		return answer{}, errors.New("the broker answered for another partition")
	}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset:         offset,
		IsolationLevel: kgo.ReadCommitted(),
		Topic:          topic,
		Partition:      partition,
		Pools:          []kgo.Pool{memory},
	}, rp, memory, nil)
	if fp.Err != nil && len(fp.Records) == 0 {
		return answer{}, fp.Err
	}
	if next <= offset && len(rp.RecordBatches) > 0 {
		return answer{}, errStuck
	}
	// A damaged batch behind good ones is met again, alone, by the next fetch.
	return answer{
		records: fp.Records, next: next, stable: fp.LastStableOffset,
		end: fp.HighWatermark, start: fp.LogStartOffset,
		empty: len(rp.RecordBatches) == 0, memory: memory,
	}, nil
}

// verdict says what to do about a failed fetch.
type verdict uint8

const (
	giveUp     verdict = iota // not mended by asking again
	retry                     // ask again after a pause
	newLeader                 // ask again, of whoever the cluster now names
	gone                      // the topic is unknown, or known by another id
	outOfRange                // the offset is outside the log
)

func judge(err error) verdict {
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange):
		return outOfRange
	case unknownTopic(err):
		return gone
	case errors.Is(err, errThrottled):
		return retry
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok && !ke.Retriable && !errors.Is(err, kerr.UnknownServerError) {
		return giveUp
	}
	// Everything else is a leader on the move or a connection that broke; damaged bytes
	// end up here as well and run into the bound on time without an answer.
	return newLeader
}

// rangeError explains an offset outside the log, or returns nil when the log holds it
// by now.
func (r *Reader) rangeError(ctx context.Context, topic string, partition int32, offset int64) error {
	tp := TopicPartition{topic, partition}
	b, err := ListBounds(ctx, r.cl, []TopicPartition{tp})
	if err != nil {
		return err
	}
	e := &RangeError{Topic: topic, Partition: partition, Position: offset, Start: b[tp].Start, End: b[tp].HighWatermark}
	switch {
	case offset < e.Start:
		e.Err = ErrBelowStart
	case offset > e.End:
		e.Err = ErrBeyondEnd
	default:
		return nil
	}
	return e
}

func readError(topic string, partition int32, offset int64, err error) error {
	return fmt.Errorf("changelog: read %s/%d at offset %d: %w", topic, partition, offset, err)
}
