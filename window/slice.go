package window

// maxSliceFactor bounds how many more slices than windows a record may stand for: slices save writes, one instead of
// one per window, and cost merging when a window fires. With a hop that hardly divides the size the slices get so small
// that the windows themselves are cheaper.
const maxSliceFactor = 4

// Sliced reports whether the windows are better kept as slices that do not overlap, of which each window is the union:
// a record then changes one slice instead of every window it belongs to. It is so for cumulating windows and for
// hopping windows that overlap, unless their slices would be too small.
func (w Window) Sliced() bool {
	switch w.kind {
	case KindCumulate:
		return w.size > w.hop
	case KindHopping:
		return w.size > w.hop && w.size/w.SliceWidth() <= maxSliceFactor*((w.size+w.hop-1)/w.hop)
	}
	return false
}

// SliceWidth returns the length of a slice in milliseconds: the greatest common divisor of size and hop, the step of
// cumulating windows, and the size of tumbling ones; 0 for windows that cannot be sliced.
func (w Window) SliceWidth() int64 {
	switch w.kind {
	case KindTumbling, KindCumulate:
		return w.hop
	case KindHopping:
		a, b := w.size, w.hop
		for b != 0 {
			a, b = b, a%b
		}
		return a
	}
	return 0
}

// Slice returns the slice that holds ts. Only for windows with a SliceWidth.
func (w Window) Slice(ts int64) Bounds {
	ts = inside(ts)
	n := w.SliceWidth()
	if n == 0 {
		return Bounds{}
	}
	d := phase(ts, w.off, n)
	return Bounds{sub(ts, d), add(ts, n-d)}
}

// SliceOf returns the slice that ends at end, which must be an end that Slice has given. A window [s, e) is the union of the
// slices with ends in (s, e].
func (w Window) SliceOf(end int64) Bounds { return w.Slice(end - 1) }
