package window

import (
	"cmp"
	"slices"
)

// Left returns the sliding window whose last record time is ts.
func (w Window) Left(ts int64) Bounds {
	ts = inside(ts)
	return Bounds{sub(ts, w.size), ts + 1}
}

// Right returns the sliding window that begins right after ts. It exists only if it holds a record.
func (w Window) Right(ts int64) Bounds {
	start := inside(add(ts, 1))
	return Bounds{start, add(start, w.size+1)}
}

// Affected appends the sliding windows of a key that a record at ts adds to or brings into being, in ascending order of
// their ends. times are the distinct record times of the key before this record, in any order; all of those from
// ts-diff-1 to ts+diff+1 have to be there, others do no harm. The result has every window that contains ts, and the one
// right after ts if it is new and holds a record.
func (w Window) Affected(dst []Bounds, ts int64, times []int64) []Bounds {
	if w.kind != KindSliding {
		return dst
	}
	ts = inside(ts)
	first := len(dst)
	dst = append(dst, w.Left(ts))
	for _, t := range times {
		switch {
		case t < ts && w.Right(t).Contains(ts):
			dst = append(dst, w.Right(t))
		case t > ts && w.Left(t).Contains(ts):
			dst = append(dst, w.Left(t))
		}
	}
	if n := w.Right(ts); w.isNew(n, ts, times) {
		dst = append(dst, n)
	}
	// The window right of one record may be the one left of another.
	found := dst[first:]
	slices.SortFunc(found, func(a, b Bounds) int { return cmp.Compare(a.End, b.End) })
	return dst[:first+len(slices.Compact(found))]
}

// isNew reports whether b, the window right of a record at ts, holds a record and was not there before.
func (w Window) isNew(b Bounds, ts int64, times []int64) bool {
	found := false
	for _, t := range times {
		if t == ts || w.Left(t) == b {
			return false
		}
		found = found || b.Contains(t)
	}
	return found
}
