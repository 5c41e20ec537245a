package changelog

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/clock"
)

func newReader(cfg ReaderConfig) (*Reader, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = 100 * time.Millisecond
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 32 << 20
	}
	if cfg.MaxPartitionBytes == 0 {
		cfg.MaxPartitionBytes = 8 << 20
	}
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		return nil, err
	}
	return &Reader{cfg, cl}, nil
}

// Read reads every partition from From until its position has reached Target and
// the last stable offset has passed it, and returns the positions reached (≥ Target),
// in the order of parts. Records of aborted transactions and control records are
// never handed out; they only move the position.
//
// sink gets every record with the index of its partition, on the caller's goroutine,
// in offset order within a partition. The record, its key and its value are valid
// only during the call. An error of the sink ends the read and is returned as it is.
// progress (nil allowed) is called after every answer that moved a position.
//
// A target that the last stable offset does not pass keeps the read waiting until
// ctx ends: a transaction is open there, and the caller knows whose it may be.
// Errors: *RangeError, *TopicGoneError, the error of ctx; the positions returned
// beside an error are those up to which the sink has been called.
func (r *Reader) Read(ctx context.Context, parts []Partition, sink func(i int, rec *kgo.Record) error, progress func(i int, pos, target int64)) ([]int64, error) {
	return nil, errors.New("changelog: read: not built yet")
}
