package watermark

import (
	"math"
	"time"
)

// add returns a+b, or the nearest int64 to it.
func add(a, b int64) int64 {
	s := a + b
	switch {
	case b > 0 && s < a:
		return math.MaxInt64
	case b < 0 && s > a:
		return math.MinInt64
	}
	return s
}

// sub returns a-b, or the nearest int64 to it.
func sub(a, b int64) int64 {
	d := a - b
	switch {
	case b < 0 && d < a:
		return math.MaxInt64
	case b > 0 && d > a:
		return math.MinInt64
	}
	return d
}

// below is the watermark of someone who has seen time t and waits for records
// that are up to delay milliseconds older.
func below(t, delay int64) int64 { return sub(sub(t, delay), 1) }

// millis is t in milliseconds, or the nearest int64 to it: time.Time reaches
// farther than that, and UnixMilli wraps around beyond it.
func millis(t time.Time) int64 {
	switch s := t.Unix(); {
	case s >= math.MaxInt64/1000:
		return math.MaxInt64
	case s <= math.MinInt64/1000:
		return math.MinInt64
	}
	return t.UnixMilli()
}
