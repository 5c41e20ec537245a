package watermark

import "time"

// Ahead reports whether a partition at w is more than drift ahead of low, the
// least watermark of the partitions that are not idle, and should be paused. A
// negative drift allows any distance. Nothing is ahead of Unknown: a partition
// without a first record would otherwise stop all others.
func Ahead(w, low int64, drift time.Duration) bool {
	return drift >= 0 && low != Unknown && w > add(low, drift.Milliseconds())
}
