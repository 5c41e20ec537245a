package window

import (
	"math"
	"strconv"
)

const (
	minTime = math.MinInt64
	maxTime = math.MaxInt64
)

// Bounds is a window as an interval of time: Start is in it, End is not. An End of the largest int64 stands for every
// end from there on, a Start of the smallest for every start up to there; of windows that would differ only beyond
// these limits there is one.
type Bounds struct{ Start, End int64 }

// Last returns the last millisecond that is in the window. The window is complete when the watermark has reached it.
func (b Bounds) Last() int64 { return b.End - 1 }

// Contains reports whether ts is in the window.
func (b Bounds) Contains(ts int64) bool { return b.Start <= ts && ts < b.End }

// Intersects reports whether the windows share a millisecond. Windows that only touch do not.
func (b Bounds) Intersects(o Bounds) bool { return b.Start < o.End && o.Start < b.End }

// Union returns the smallest window that holds both.
func (b Bounds) Union(o Bounds) Bounds {
	return Bounds{Start: min(b.Start, o.Start), End: max(b.End, o.End)}
}

// String returns "[start,end)" in milliseconds.
func (b Bounds) String() string {
	return "[" + strconv.FormatInt(b.Start, 10) + "," + strconv.FormatInt(b.End, 10) + ")"
}

// add returns a+d, saturated.
func add(a, d int64) int64 {
	s := a + d
	if d >= 0 && s < a {
		return maxTime
	}
	if d < 0 && s > a {
		return minTime
	}
	return s
}

// sub returns a-d, saturated.
func sub(a, d int64) int64 {
	s := a - d
	if d >= 0 && s > a {
		return minTime
	}
	if d < 0 && s < a {
		return maxTime
	}
	return s
}

// floorDiv returns the quotient rounded down; n is positive.
func floorDiv(a, n int64) int64 {
	q := a / n
	if a%n < 0 {
		q--
	}
	return q
}

// floorMod returns the remainder in [0, n); n is positive.
func floorMod(a, n int64) int64 {
	r := a % n
	if r < 0 {
		r += n
	}
	return r
}

// phase returns how far ts is past the last point of the grid off + k·n, without overflow for any ts.
func phase(ts, off, n int64) int64 {
	d := floorMod(ts, n)
	if off != 0 {
		d = floorMod(d-floorMod(off, n), n)
	}
	return d
}

// inside moves the one time that no half-open window can hold into the last one.
func inside(ts int64) int64 {
	if ts == maxTime {
		return maxTime - 1
	}
	return ts
}
