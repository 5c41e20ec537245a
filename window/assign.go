package window

// Assign appends the windows that a record at ts belongs to, in ascending order of their ends. It allocates nothing
// beyond dst. For a session it appends Proto(ts), for a sliding window Left(ts); both depend on the other records of
// the key, and the caller has to go on from there. Hopping windows with gaps may hold no window for ts.
func (w Window) Assign(dst []Bounds, ts int64) []Bounds {
	ts = inside(ts)
	switch w.kind {
	case KindTumbling, KindHopping:
		return w.hopping(dst, ts)
	case KindCumulate:
		return w.cumulate(dst, ts)
	case KindSession:
		return append(dst, w.Proto(ts))
	case KindSliding:
		return append(dst, w.Left(ts))
	case KindGlobal:
		return append(dst, Bounds{minTime, maxTime})
	case KindDay, KindWeek, KindMonth, KindQuarter, KindYear:
		return append(dst, w.cal.period(ts))
	}
	return dst
}

// hopping appends the hopping windows around ts. d is how far ts is behind the start of a window, so that nothing
// overflows before it is known to. Windows that would start before all time differ in nothing but their end, those that
// would end after all time in nothing but their start: one of each is kept, so that a start or an end names a window.
func (w Window) hopping(dst []Bounds, ts int64) []Bounds {
	d := phase(ts, w.off, w.hop)
	if d >= w.size {
		return dst
	}
	d += (w.size - d - 1) / w.hop * w.hop
	low := -1
	for ; d >= 0; d -= w.hop {
		b := Bounds{sub(ts, d), add(ts, w.size-d)}
		if b.Start == minTime && low >= 0 {
			dst[low] = b
		} else {
			if b.Start == minTime {
				low = len(dst)
			}
			dst = append(dst, b)
		}
		if b.End == maxTime {
			break
		}
	}
	return dst
}

// cumulate appends the cumulating windows around ts.
func (w Window) cumulate(dst []Bounds, ts int64) []Bounds {
	d := phase(ts, w.off, w.size)
	start := sub(ts, d)
	for n := d/w.hop*w.hop + w.hop; n <= w.size; n += w.hop {
		b := Bounds{start, add(ts, n-d)}
		dst = append(dst, b)
		if b.End == maxTime {
			break
		}
	}
	return dst
}

// Of returns the window that ends at end, which must be an end that Assign has given. For a session, whose start does
// not follow from its end, it returns the shortest one.
func (w Window) Of(end int64) Bounds {
	switch w.kind {
	case KindTumbling, KindHopping:
		if end == maxTime {
			// The first of the windows that end here or later.
			return Bounds{sub(end, w.size-phase(w.off+w.size, floorMod(end, w.hop), w.hop)), end}
		}
		return Bounds{sub(end, w.size), end}
	case KindCumulate:
		return Bounds{sub(end-1, phase(end-1, w.off, w.size)), end}
	case KindSession:
		return Bounds{sub(end, w.size), end}
	case KindSliding:
		return Bounds{sub(end, w.size+1), end}
	case KindGlobal:
		return Bounds{minTime, maxTime}
	case KindDay, KindWeek, KindMonth, KindQuarter, KindYear:
		return w.cal.period(end - 1)
	}
	return Bounds{}
}

// StartingAt returns the window that starts at start, which must be a start that Assign has given: the longest one for
// cumulating windows, the shortest one for sessions.
func (w Window) StartingAt(start int64) Bounds {
	switch w.kind {
	case KindTumbling, KindHopping:
		if start == minTime {
			return Bounds{start, add(start, w.size-phase(start, w.off, w.hop))}
		}
		return Bounds{start, add(start, w.size)}
	case KindCumulate:
		if start == minTime {
			return Bounds{start, add(start, w.size-phase(start, w.off, w.size))}
		}
		return Bounds{start, add(start, w.size)}
	case KindSession:
		return Bounds{start, add(start, w.size)}
	case KindSliding:
		return Bounds{start, add(start, w.size+1)}
	case KindGlobal:
		return Bounds{minTime, maxTime}
	case KindDay, KindWeek, KindMonth, KindQuarter, KindYear:
		return w.cal.period(start)
	}
	return Bounds{}
}
