package changelog

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Probe asks once, without waiting for anybody, for the end of each partition. A partition whose leader does not answer,
// or answers with an error, is missing in the result: nothing is known about it now.
//
// Start is not asked for. The last stable offset is asked for before the high watermark, so where both are equal no
// record is hidden below.
func Probe(ctx context.Context, cl *kgo.Client, parts []TopicPartition) map[TopicPartition]Bounds {
	stable := make(map[TopicPartition]int64, len(parts))
	listOnce(ctx, cl, parts, timestampLatest, readCommitted, stable)
	ends := make(map[TopicPartition]int64, len(parts))
	listOnce(ctx, cl, parts, timestampLatest, readUncommitted, ends)
	out := make(map[TopicPartition]Bounds, len(parts))
	for _, p := range parts {
		lso, ok := stable[p]
		hw, answered := ends[p]
		if ok && answered {
			out[p] = Bounds{Start: -1, LastStable: lso, HighWatermark: hw}
		}
	}
	return out
}
