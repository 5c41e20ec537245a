package processor

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/window"
)

// blocks holds the slices of an aggregate. A window of hundreds of slices is read as a few blocks: a block of level l is
// 2^l slices that follow each other, begins at a multiple of 2^l, and is merged from two of level l-1 when the first firing
// asks for it. A slice is thus merged once per level and not once per window, and a firing reads at most two blocks per
// level.
//
//	slices    1 2 3 4 5 6 7 8 9 …
//	level 1   |1 2|3 4|5 6|7 8|         the window of the slices 2 to 8 is 2, 3 4 and 5 6 7 8
//	level 2   |1 2 3 4|5 6 7 8|
//
// Blocks are made from slices, so they need no changelog: after a restore they are made again. Their store has a row per
// end, level and key, and one without a key that says that the block is complete.
//
// Merging two slices alone spares a firing one row and costs a write, so what has slices in one half only is not built.
type blocks[A any] struct {
	w      window.Window
	slices *store.WindowView[A] // by end of the slice and key
	built  *store.WindowView[A] // by end of the block and level | key
	merge  func(a, b A) A
	levels int
	cache  blockCache[A]
	ends   []int64 // of slices that may hold rows
	buf    []byte
	parts  []block
	// The block that is being built, how far, and from what, nil while that is not being read.
	making block
	done   []byte
	rows   *merged[A]
}

// block is 2^level slices up to the one with the number last.
type block struct {
	level int
	last  int64
}

// before returns the number of the slice before the block.
func (b block) before() int64 { return b.last - 1<<b.level }

func newBlocks[A any](w window.Window, slices, built *store.WindowView[A], merge func(a, b A) A) blocks[A] {
	n := w.Size() / w.SliceWidth()
	return blocks[A]{w: w, slices: slices, built: built, merge: merge, levels: bits.Len64(uint64(n)) - 1}
}

// add folds into the slice s of a key and, if it is behind the watermark, into the blocks that were made of it. An error
// is one of fold or of the state.
func (o *blocks[A]) add(key []byte, s window.Bounds, time, w int64, fold func(acc A, have bool) (A, error)) error {
	row, err := o.slices.Row(s.End, key)
	if err != nil {
		return err
	}
	if err := put(o.slices, row, time, fold); err != nil || s.Last() > w {
		return err
	}
	at := o.w.SliceIndex(s.End)
	o.cache.drop(block{0, at})
	for l := 1; l <= o.levels; l++ {
		b := block{l, (at + 1<<l - 1) >> l << l}
		if ok, err := o.complete(b); err != nil {
			return err
		} else if !ok {
			continue
		}
		o.cache.drop(b)
		row, err := o.built.Row(o.w.SliceEnd(b.last), o.key(l, key))
		if err != nil {
			return err
		}
		if err := put(o.built, row, time, fold); err != nil {
			return err
		}
	}
	return nil
}

func put[A any](v *store.WindowView[A], row *store.Row[A], time int64, fold func(acc A, have bool) (A, error)) error {
	acc, err := fold(row.Value, row.Present)
	if err != nil {
		return err
	}
	if row.Present {
		time = max(time, row.Time)
	}
	v.Set(row, acc, time)
	return nil
}

// key returns the key of a row of a block. Level 0 is for the rows that say that a block is complete.
func (o *blocks[A]) key(level int, key []byte) []byte {
	o.buf = append(append(o.buf[:0], byte(level)), key...)
	return o.buf
}

func (o *blocks[A]) complete(b block) (bool, error) {
	_, ok, err := o.built.Get(o.w.SliceEnd(b.last), o.key(0, []byte{byte(b.level)}))
	return ok, err
}

// nextWindow returns the end of the first window with slices that is not complete at w.
func (o *blocks[A]) nextWindow(w int64) (end int64, ok bool) {
	o.ends = o.slices.Ends(o.ends[:0], -maxSliced, 2*maxSliced)
	for _, e := range o.ends {
		cover := o.w.Cover(o.w.SliceOf(e))
		if ok && cover.First >= end {
			break
		}
		if n, open := cover.Next(w); open && (!ok || n < end) {
			end, ok = n, true
		}
	}
	return end, ok
}

// expire drops the slices, and the blocks up to them, that no window after w needs.
func (o *blocks[A]) expire(w int64) {
	end := o.w.SlicesDone(w)
	o.slices.Expire(end)
	o.built.Expire(end)
	if end > -maxSliced && end < maxSliced {
		o.cache.expire(o.w.SliceIndex(end))
	}
}

// cover returns the blocks of a window, oldest first, and makes those that are missing. It is not ready when the budget
// is used up before.
func (o *blocks[A]) cover(b window.Bounds, left *budget) (parts []block, ready bool, err error) {
	o.ends = o.slices.Ends(o.ends[:0], b.Start+1, b.End)
	o.parts = o.parts[:0]
	o.cache.turn++
	last := o.w.SliceIndex(b.End)
	for at := o.w.SliceIndex(b.Start); at < last; {
		l := o.levels
		for at&(1<<l-1) != 0 || at+1<<l > last {
			l--
		}
		at += 1 << l
		p, some, ready, err := o.get(block{l, at}, left)
		if err != nil || !ready {
			return nil, false, err
		}
		if some {
			o.parts = append(o.parts, p)
		}
	}
	return o.parts, true, nil
}

// get returns what a block is read from: itself, a smaller block that has all its slices, or nothing.
func (o *blocks[A]) get(b block, left *budget) (p block, some, ready bool, err error) {
	from, _ := slices.BinarySearch(o.ends, o.w.SliceEnd(b.before())+1)
	to, _ := slices.BinarySearch(o.ends, o.w.SliceEnd(b.last)+1)
	switch to - from {
	case 0:
		return b, false, true, nil
	case 1:
		return block{0, o.w.SliceIndex(o.ends[from])}, true, true, nil
	}
	if ok, err := o.complete(b); err != nil || ok {
		return b, true, ok, err
	}
	old, some1, ready, err := o.get(block{b.level - 1, b.last - 1<<(b.level-1)}, left)
	if err != nil || !ready {
		return b, false, false, err
	}
	young, some2, ready, err := o.get(block{b.level - 1, b.last}, left)
	switch {
	case err != nil || !ready:
		return b, false, false, err
	case !some1:
		return young, true, true, nil
	case !some2:
		return old, true, true, nil
	}
	ready, err = o.build(b, []block{old, young}, left)
	return b, true, ready, err
}

// build merges two blocks into one.
func (o *blocks[A]) build(b block, from []block, left *budget) (bool, error) {
	if o.making != b {
		o.making, o.done = b, nil
	}
	if o.rows == nil {
		rows, err := o.open(from, o.done)
		if err != nil {
			return false, err
		}
		o.rows = rows
	}
	end := o.w.SliceEnd(b.last)
	for {
		if !left.take() {
			return false, nil
		}
		ok, err := o.rows.next()
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		row, err := o.built.Row(end, o.key(b.level, o.rows.key))
		if err != nil {
			return false, err
		}
		o.built.Set(row, o.rows.acc, o.rows.time)
		o.done = append(append(o.done[:0], o.rows.key...), 0)
	}
	some, acc := o.done != nil, o.rows.acc
	if err := o.pause(); err != nil {
		return false, err
	}
	if o.making, o.done = (block{}), nil; !some {
		return true, nil // its slices have lost their rows; it is no work to find that out again
	}
	row, err := o.built.Row(end, o.key(0, []byte{byte(b.level)}))
	if err != nil {
		return false, err
	}
	// The value means nothing, but it is one the codec knows.
	o.built.Set(row, acc, 0)
	return true, nil
}

// pause closes what build holds open.
func (o *blocks[A]) pause() error {
	if o.rows == nil {
		return nil
	}
	err := o.rows.close()
	o.rows = nil
	return err
}

// open returns the rows of blocks by key, those of one key merged, from a key on.
func (o *blocks[A]) open(parts []block, first []byte) (*merged[A], error) {
	m := &merged[A]{merge: o.merge, runs: make([]run[A], 0, len(parts))}
	for _, p := range parts {
		r := run[A]{level: p.level}
		if list := o.cache.get(p); list != nil {
			r.list, r.next = list, list.from(first)
			r.advance()
			m.runs = append(m.runs, r)
			continue
		}
		if first == nil {
			r.cache, r.of, r.record = &o.cache, p, &rowList[A]{}
		}
		var err error
		if end := o.w.SliceEnd(p.last); p.level == 0 {
			r.rows, err = o.slices.ScanEndFrom(end, first)
		} else {
			r.rows, err = o.built.ScanEndFrom(end, o.key(p.level, first))
		}
		if err != nil {
			_ = m.close()
			return nil, fmt.Errorf("read slices: %w", err)
		}
		r.advance()
		m.runs = append(m.runs, r)
	}
	return m, nil
}
