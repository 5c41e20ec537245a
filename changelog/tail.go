package changelog

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Tail is the newest progress record of one partition.
type Tail struct {
	Found  bool
	Offset int64     // of the record
	Epoch  int32     // leader epoch of the record
	Record *Progress // nil when not Found
}

const (
	// tailWindow is how many offsets before the end are read first: a commit takes two
	// (record and marker), so that this holds a hundred of them.
	tailWindow = 256
	// tailGrowth widens the window each time it held nothing.
	tailGrowth = 8
)

// ReadTail returns the newest committed progress record of a partition of a
// progress topic that lies below end, the high watermark read beforehand. It starts
// near the end and goes back further while it finds none, because the end may be
// markers, aborted records or holes. Found is false when the whole partition has none,
// or when the newest is a deletion. Errors as Read, and those of DecodeProgress.
func (r *Reader) ReadTail(ctx context.Context, topic string, partition int32, end int64) (Tail, error) {
	start := int64(0)
	for window := int64(tailWindow); end > start; window *= tailGrowth {
		from := max(start, end-window)
		tail, value, err := r.lastIn(ctx, Partition{Topic: topic, Partition: partition, From: from, Target: end})
		if re, ok := errors.AsType[*RangeError](err); ok && errors.Is(err, ErrBelowStart) && re.Start > from {
			start = re.Start
			continue
		}
		if err != nil {
			return Tail{}, err
		}
		if tail.Found {
			if value == nil {
				return Tail{}, nil
			}
			if tail.Record, err = DecodeProgress(value); err != nil {
				return Tail{}, fmt.Errorf("%s/%d at offset %d: %w", topic, partition, tail.Offset, err)
			}
			return tail, nil
		}
		end = from
	}
	return Tail{}, nil
}

// lastIn returns the last progress record of a range of offsets, not decoded.
func (r *Reader) lastIn(ctx context.Context, p Partition) (tail Tail, value []byte, err error) {
	_, err = r.ReadBatches(ctx, []Partition{p}, func(_ int, recs []*kgo.Record) (int, error) {
		for n := len(recs) - 1; n >= 0; n-- {
			if rec := recs[n]; string(rec.Key) == ProgressKey {
				tail = Tail{Found: true, Offset: rec.Offset, Epoch: rec.LeaderEpoch}
				value = nil
				if rec.Value != nil {
					value = append([]byte{}, rec.Value...)
				}
				break
			}
		}
		return len(recs), nil
	}, nil)
	return tail, value, err
}
