package witness

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type topicPartition struct {
	topic     string
	partition int32
}

// follower reads whole topics, read_committed, up to the last stable offsets of the moment it is asked.
type follower struct {
	cl     *kgo.Client
	adm    *kadm.Client
	topics []string
	pos    map[topicPartition]int64 // next offset
	see    func(*kgo.Record)
}

func newFollower(client []kgo.Opt, topics []string, see func(*kgo.Record)) (*follower, error) {
	cl, err := kgo.NewClient(append(append([]kgo.Opt{}, client...),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the position moves with them
		kgo.FetchMaxWait(50*time.Millisecond),
		kgo.MetadataMinAge(100*time.Millisecond),
	)...)
	if err != nil {
		return nil, fmt.Errorf("witness: follow: %w", err)
	}
	return &follower{cl: cl, adm: kadm.NewClient(cl), topics: topics, pos: make(map[topicPartition]int64), see: see}, nil
}

// ends returns the last stable offsets.
func (f *follower) ends(ctx context.Context) (map[topicPartition]int64, error) {
	return ends(f.adm.ListCommittedOffsets(ctx, f.topics...))
}

func ends(l kadm.ListedOffsets, err error) (map[topicPartition]int64, error) {
	if err == nil {
		err = l.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("witness: list offsets: %w", err)
	}
	out := make(map[topicPartition]int64)
	l.Each(func(o kadm.ListedOffset) { out[topicPartition{o.Topic, o.Partition}] = o.Offset })
	return out, nil
}

// upTo reads until every position has reached its end.
func (f *follower) upTo(ctx context.Context, ends map[topicPartition]int64) error {
	for {
		behind := ""
		for tp, end := range ends {
			if f.pos[tp] < end {
				behind = fmt.Sprintf("%s/%d is read to %d, ends at %d", tp.topic, tp.partition, f.pos[tp], end)
				break
			}
		}
		if behind == "" {
			return nil
		}
		fs := f.cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("witness: read: %w: %s", ctx.Err(), behind)
		}
		fs.EachRecord(func(r *kgo.Record) {
			tp := topicPartition{r.Topic, r.Partition}
			if r.Offset < f.pos[tp] {
				return // the client went back after a change of leaders; what it shows again is known
			}
			f.pos[tp] = r.Offset + 1
			if !r.Attrs.IsControl() {
				f.see(r)
			}
		})
	}
}

func (f *follower) close() { f.cl.Close() }
