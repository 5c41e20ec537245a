package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/tidemark/tidemark/store"
)

// Sliced says how windows are made of the rows of a store that keeps slices, which do not overlap, instead of the windows.
// Windows are named by their ends in ms.
type Sliced struct {
	// Width is the length of a slice.
	Width int64
	// Hop is the distance from the end of a window to that of the next.
	Hop int64
	// First returns the first window that starts at a moment or later.
	First func(from int64) (end int64)
	// Cover returns the first window that contains the slice with an end.
	Cover func(slice int64) (end int64)
	// Done returns the moment before whose windows, by their starts, are over at a watermark: slices of theirs may have gone.
	Done func(watermark int64) int64
	// Merge appends the value of two slices together, the earlier one first, to dst.
	Merge func(dst, a, b []byte) ([]byte, error)
}

// readSliced reads windows that are kept as slices. Those that are over at the watermark of the view are no rows any more.
func (v *View) readSliced(ctx context.Context, s *Store, p *page) error {
	lo, hi := p.Range.From, p.Range.To
	if p.Key != nil {
		lo, hi = p.Key, append(bytes.Clone(p.Key), 0)
	}
	r := &slicedReader{v: v, s: s, windows: *s, page: p, lo: lo, hi: hi, seen: make(map[int64][]byte)}
	r.windows.Sliced, r.windows.Panes = nil, false
	from := p.From
	if v.Watermark != NoWatermark {
		from = max(from, s.Sliced.Done(v.Watermark))
	}
	at, any := int64(0), from == -1<<63
	if !any {
		at = s.Sliced.First(from)
	}
	var rest []byte
	if p.After != nil {
		end, key, ok := store.ParseWindowKey(p.After)
		if !ok {
			return Errorf(TokenMalformed, "the page token is none of store %s", s.ID)
		}
		if any || end >= at {
			at, any, rest = end, false, append(bytes.Clone(key), 0)
		}
	}
	if any {
		end, ok, err := v.firstEnd(s, make([]byte, 8))
		if err != nil || !ok {
			return errors.Join(err, v.stillOf(s))
		}
		at = s.Sliced.Cover(end)
	}
	for {
		start := s.StartOf(at)
		end, ok, err := v.firstEnd(s, store.AppendTimeKey(nil, start+1))
		switch {
		case err != nil:
			return err
		case !ok || start > p.To:
			p.next = nil
			return v.stillOf(s)
		case ctx.Err() != nil:
			return Errorf(Deadline, "the deadline came while windows were looked for")
		case end > at: // nothing is in this window
			at, rest = max(s.Sliced.Cover(end), at+s.Sliced.Hop), nil
			continue
		}
		full, err := r.window(ctx, at, start, rest)
		if err != nil || full {
			return err
		}
		at, rest = at+s.Sliced.Hop, nil
	}
}

// slicedReader reads windows one after the other.
type slicedReader struct {
	v       *View
	s       *Store
	windows Store // s, for rows that are windows
	page    *page
	lo, hi  []byte           // keys
	seen    map[int64][]byte // rows of the one key asked for, by slice; nil: none
}

// window reads the rows of one window from a key on, and reports whether the page is full.
func (r *slicedReader) window(ctx context.Context, end, start int64, from []byte) (full bool, err error) {
	var slices []int64
	for at := start + 1; ; {
		slice, ok, err := r.v.firstEnd(r.s, store.AppendTimeKey(nil, at))
		if err != nil {
			return false, err
		}
		if !ok || slice > end {
			break
		}
		slices = append(slices, slice)
		at = slice + 1
	}
	if r.page.Key != nil {
		if from != nil {
			return false, nil // it was shown
		}
		return r.one(ctx, end, slices)
	}
	return r.merge(ctx, end, slices, from)
}

// one reads the row of the one key asked for.
func (r *slicedReader) one(ctx context.Context, end int64, slices []int64) (full bool, err error) {
	var row []byte
	for _, slice := range slices {
		b, ok := r.seen[slice]
		if !ok {
			if b, ok, err = r.v.rows.Get(nil, r.s.Index, store.AppendWindowKey(nil, slice, r.page.Key)); err != nil {
				return false, failed(r.s, err)
			}
			if !ok {
				b = nil
			}
			r.seen[slice] = b
		}
		if row, err = r.add(row, b); err != nil {
			return false, err
		}
	}
	return r.show(ctx, end, r.page.Key, row)
}

// add puts the row of a slice to that of the slices before; nil is no row.
func (r *slicedReader) add(row, b []byte) ([]byte, error) {
	if row == nil || b == nil {
		if b == nil {
			return row, nil
		}
		return bytes.Clone(b), nil
	}
	if len(b) < 8 {
		return nil, failed(r.s, errRow)
	}
	t := max(int64(binary.BigEndian.Uint64(row)), int64(binary.BigEndian.Uint64(b)))
	out, err := r.s.Sliced.Merge(binary.BigEndian.AppendUint64(nil, uint64(t)), row[8:], b[8:])
	return out, failed(r.s, err)
}

func (r *slicedReader) show(ctx context.Context, end int64, key, row []byte) (full bool, err error) {
	if row == nil {
		return false, nil
	}
	more, err := r.page.take(ctx, &r.windows, store.AppendWindowKey(nil, end, key), row, nil)
	if err != nil {
		return false, failed(r.s, err)
	}
	return !more, r.v.stillOf(r.s)
}

// merge reads the rows of all keys, slices side by side.
func (r *slicedReader) merge(ctx context.Context, end int64, slices []int64, from []byte) (full bool, err error) {
	lo := r.lo
	if bytes.Compare(from, lo) > 0 {
		lo = from
	}
	var its []store.Iterator
	defer func() {
		for _, it := range its {
			err = errors.Join(err, it.Close())
		}
	}()
	var heads [][]byte // keys, nil: exhausted
	advance := func(i int) error {
		heads[i] = nil
		if its[i].Next() {
			heads[i] = its[i].Key()[8:]
		}
		return its[i].Err()
	}
	for i, slice := range slices {
		prefix := store.AppendTimeKey(nil, slice)
		to := store.Successor(prefix)
		if r.hi != nil {
			to = append(bytes.Clone(prefix), r.hi...)
		}
		it, err := r.v.rows.Scan(r.s.Index, append(bytes.Clone(prefix), lo...), to)
		if err != nil {
			return false, failed(r.s, err)
		}
		its, heads = append(its, it), append(heads, nil)
		if err := advance(i); err != nil {
			return false, failed(r.s, err)
		}
	}
	for {
		var key, row []byte
		for _, h := range heads {
			if h != nil && (key == nil || bytes.Compare(h, key) < 0) {
				key = h
			}
		}
		if key == nil {
			return false, nil
		}
		key = append([]byte{}, key...)
		for i, h := range heads {
			if h == nil || !bytes.Equal(h, key) {
				continue
			}
			if row, err = r.add(row, its[i].Value()); err != nil {
				return false, err
			}
			if err := advance(i); err != nil {
				return false, failed(r.s, err)
			}
		}
		if full, err := r.show(ctx, end, key, row); err != nil || full {
			return full, err
		}
	}
}
