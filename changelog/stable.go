package changelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/clock"
)

// ErrUnstable reports that a commit of a partition stayed pending for as long as
// the caller was willing to wait: there is no verdict on it.
var ErrUnstable = errors.New("offset commit is pending")

// UnstableError names the partitions whose commit stayed pending. It wraps ErrUnstable.
type UnstableError struct {
	Group      string
	Partitions []TopicPartition
	Waited     time.Duration
}

func (e *UnstableError) Error() string {
	return fmt.Sprintf("changelog: stable offsets of group %q: %v of %v after %v", e.Group, ErrUnstable, e.Partitions, e.Waited)
}

// Unwrap returns ErrUnstable.
func (e *UnstableError) Unwrap() error { return ErrUnstable }

// Committed is the committed offset of one partition.
type Committed struct {
	Found    bool   // false: the group has committed nothing for the partition
	Offset   int64  // next offset to read; -1 when not Found
	Epoch    int32  // leader epoch of the commit, -1 when unknown
	Metadata string // text left with the offset
}

// StableOffsets returns the committed offset of each partition, once no commit of
// any of them is pending. Pending partitions are asked again every few milliseconds
// for at most wait, then the error is an *UnstableError. Every partition asked for is
// in the result.
func StableOffsets(ctx context.Context, cl *kgo.Client, clk clock.Clock, group string, parts []TopicPartition, wait time.Duration) (map[TopicPartition]Committed, error) {
	return nil, errors.New("changelog: stable offsets: not built yet")
}
