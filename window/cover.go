package window

// Cover is the windows that contain one slice, by their ends: First, First+Step, … up to Last.
type Cover struct{ First, Last, Step int64 }

// Cover returns the windows that contain the slice, without listing them. Only for windows with a SliceWidth.
func (w Window) Cover(slice Bounds) Cover {
	start := sub(slice.Start, phase(slice.Start, w.off, w.grid()))
	c := Cover{Last: add(start, w.size), Step: w.hop}
	if w.kind == KindCumulate {
		c.First = slice.End
	} else {
		c.First = sub(c.Last, (w.size-sub(slice.End, start))/w.hop*w.hop)
	}
	return c
}

// Next returns the end of the first window that is not complete at the watermark w, and false if all are.
func (c Cover) Next(w int64) (end int64, ok bool) {
	switch {
	case c.Last-1 <= w:
		return 0, false
	case c.First-1 > w:
		return c.First, true
	}
	// The first end of at least w+2, which is less than Last+1 and so does not overflow.
	return min(c.Last, add(c.First, (w+2-c.First+c.Step-1)/c.Step*c.Step)), true
}

// Complete returns how many of the windows are complete at the watermark w.
func (c Cover) Complete(w int64) int {
	switch {
	case c.First-1 > w:
		return 0
	case c.Last-1 <= w:
		w = c.Last - 1
	}
	return int((w+1-c.First)/c.Step) + 1
}

// SliceIndex returns the number of the slice that ends at end; SliceEnd is the way back. Slices that follow each other
// have numbers that do. Times within a size of the ends of time have none.
func (w Window) SliceIndex(end int64) int64 {
	n := w.SliceWidth()
	return (end - floorMod(w.off, n)) / n
}

// SliceEnd returns the end of the slice with that number.
func (w Window) SliceEnd(index int64) int64 {
	n := w.SliceWidth()
	return index*n + floorMod(w.off, n)
}

// SlicesDone returns the end up to which (inclusive) slices belong to no window that is not complete at the watermark wm.
func (w Window) SlicesDone(wm int64) int64 {
	switch end := endUpTo(wm, 0); end {
	case minTime, maxTime:
		return end
	default:
		start := sub(end, w.size)
		return add(sub(start, phase(start, w.off, w.grid())), w.grid())
	}
}
