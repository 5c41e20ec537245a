package query

import (
	"bytes"
	"context"

	"github.com/tidemark/tidemark/store"
)

// Page says which rows to read, and how many. Rows come in this order, by the bytes of their keys:
//
//	key-value, expiring   key
//	window                end of the window, key
//	session               key, end, start
//	versioned             key, latest first; without Key only the version that is valid at To, the latest by default
//	list                  key, index
type Page struct {
	// Key, if it is not nil, asks for the rows of one key. Else Range are the keys.
	Key   []byte
	Range Range
	// From and To bound windows by their start, both included, sessions to those that have a moment in From <= t <= To, and
	// versions to those valid at a moment in it; only with HasTime.
	HasTime  bool
	From, To int64
	// After is the Next of the page before, nil for the first.
	After []byte
	// Rows and Bytes bound the page: at least 1 each. Visit bounds how many rows are looked at.
	Rows, Visit int
	Bytes       int64
}

// page collects rows up to the limits.
type page struct {
	Page
	rows    []Row
	bytes   int64
	visited int
	next    []byte // set once the page is full
}

// Read returns one page of rows, and where the next one begins, nil if there is none. A page may hold fewer rows than
// there are, and than its limits allow, and still have a next one.
func (v *View) Read(ctx context.Context, s *Store, spec Page) (rows []Row, next []byte, err error) {
	p := &page{Page: spec}
	if !p.HasTime {
		p.From, p.To = -1<<63, maxTime
	}
	switch {
	case s.Sliced != nil:
		err = v.readSliced(ctx, s, p)
	case s.Kind == Window:
		err = v.readWindows(ctx, s, p)
	case s.Kind == KeyValue || s.Kind == Expiring:
		if p.HasTime {
			return nil, nil, Errorf(WrongKind, "store %s is one of kind %s: its rows have no time to ask for", s.ID, s.Kind)
		}
		lo, hi := p.Range.From, p.Range.To
		if p.Key != nil {
			lo, hi = p.Key, append(bytes.Clone(p.Key), 0)
		}
		err = v.readRange(ctx, s, p, lo, hi, nil)
	default:
		lo, hi := store.AppendTermKey(nil, p.Range.From), []byte(nil)
		if p.Range.To != nil {
			hi = store.AppendTermKey(nil, p.Range.To)
		}
		if p.Range.From == nil {
			lo = nil
		}
		if p.Key != nil {
			lo = store.AppendTermKey(nil, p.Key)
			hi = store.Successor(lo)
		}
		err = v.readRange(ctx, s, p, lo, hi, p.filter(s))
	}
	if err != nil {
		return nil, nil, err
	}
	return p.rows, p.next, nil
}

// filter returns what decides whether a row belongs to the answer.
func (p *page) filter(s *Store) func(*Row) bool {
	switch s.Kind {
	case Session:
		return func(r *Row) bool { return r.Start <= p.To && r.End > p.From }
	case Versioned:
		// Versions of a key come latest first; until is when the one in hand was replaced.
		var key []byte
		var until int64
		var taken bool
		if k, from, ok := store.ParseVersionKey(p.After); ok {
			key, until, taken = k, from, from <= p.To
		}
		return func(r *Row) bool {
			if key == nil || !bytes.Equal(key, r.Key) {
				key, until, taken = r.Key, maxTime, false
			}
			valid := r.Start <= p.To && (until > p.From || until == maxTime)
			until = r.Start
			if p.Key == nil {
				valid = valid && !taken && r.Start <= p.To
				taken = taken || r.Start <= p.To
			}
			return valid && !r.Deleted
		}
	}
	return nil
}

// readRange reads rows between two keys of the layout.
func (v *View) readRange(ctx context.Context, s *Store, p *page, lo, hi []byte, keep func(*Row) bool) error {
	if p.After != nil {
		lo = behind(s, p, lo)
	}
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	full := false
	err := v.scan(s, lo, hi, func(key, b []byte) (bool, error) {
		more, err := p.take(ctx, s, key, b, keep)
		full = !more
		return more, err
	})
	if !full {
		p.next = nil
	}
	return err
}

// behind returns where the scan goes on after a page.
func behind(s *Store, p *page, lo []byte) []byte {
	after := append(bytes.Clone(p.After), 0)
	if s.Kind == Versioned && p.Key == nil {
		// The older versions of a key that was shown are no rows of this scan.
		if key, from, ok := store.ParseVersionKey(p.After); ok && from <= p.To {
			after = store.Successor(store.AppendTermKey(nil, key))
		}
	}
	if bytes.Compare(after, lo) < 0 {
		return lo
	}
	return after
}

// take looks at one row and says whether the page has room for more.
func (p *page) take(ctx context.Context, s *Store, key, b []byte, keep func(*Row) bool) (more bool, err error) {
	if p.visited++; p.visited%256 == 0 {
		if err := ctx.Err(); err != nil {
			return false, Errorf(Deadline, "the deadline came while rows were read")
		}
	}
	r, ok, err := UserRow(s, key, b)
	if err != nil {
		return false, err
	}
	if ok && (keep == nil || keep(&r)) {
		size := int64(len(r.Key) + len(r.Value))
		if size > p.Bytes {
			return false, Errorf(TooLarge, "a row of %d bytes exceeds the limit of %d for an answer", size, p.Bytes)
		}
		if p.bytes+size > p.Bytes {
			return false, nil // next points before it
		}
		p.rows = append(p.rows, r)
		p.bytes += size
	}
	p.next = append([]byte{}, key...) // never nil: a key may be empty
	if len(p.rows) == p.Rows || p.Visit > 0 && p.visited >= p.Visit {
		return false, nil
	}
	return true, nil
}

// readWindows reads windows by their ends, and in each the keys asked for.
func (v *View) readWindows(ctx context.Context, s *Store, p *page) error {
	lo, hi := p.Range.From, p.Range.To
	if p.Key != nil {
		lo, hi = p.Key, append(bytes.Clone(p.Key), 0)
	}
	at, rest := store.AppendTimeKey(nil, p.From), []byte(nil)
	if p.After != nil {
		end, key, ok := store.ParseWindowKey(p.After)
		if !ok {
			return Errorf(TokenMalformed, "the page token is none of store %s", s.ID)
		}
		at, rest = store.AppendTimeKey(nil, end), append(bytes.Clone(key), 0)
	}
	for {
		end, ok, err := v.firstEnd(s, at)
		if err != nil {
			return err
		}
		if !ok || s.StartOf(end) > p.To {
			p.next = nil
			return v.stillOf(s)
		}
		first := lo
		if !bytes.Equal(at, store.AppendTimeKey(nil, end)) {
			rest = nil
		}
		if rest != nil && bytes.Compare(rest, lo) > 0 {
			first = rest
		}
		rest = nil
		prefix := store.AppendTimeKey(nil, end)
		if s.StartOf(end) >= p.From {
			full, err := v.readWindow(ctx, s, p, prefix, first, hi)
			if err != nil || full {
				return err
			}
		} else if err := ctx.Err(); err != nil {
			return Errorf(Deadline, "the deadline came while windows were looked for")
		}
		if at = store.Successor(prefix); at == nil {
			p.next = nil
			return nil
		}
	}
}

// readWindow reads the rows of one window, and reports whether the page is full.
func (v *View) readWindow(ctx context.Context, s *Store, p *page, prefix, lo, hi []byte) (full bool, err error) {
	if p.Key != nil {
		return v.readOne(ctx, s, p, append(bytes.Clone(prefix), p.Key...), lo)
	}
	from, to := append(bytes.Clone(prefix), lo...), store.Successor(prefix)
	if hi != nil {
		to = append(bytes.Clone(prefix), hi...)
	}
	err = v.scan(s, from, to, func(key, b []byte) (bool, error) {
		more, err := p.take(ctx, s, key, b, nil)
		full = !more
		return more, err
	})
	return full, err
}

// readOne reads the row of the one key asked for, unless the page before has shown it.
func (v *View) readOne(ctx context.Context, s *Store, p *page, key, lo []byte) (full bool, err error) {
	if bytes.Compare(p.Key, lo) < 0 {
		return false, nil
	}
	b, ok, err := v.rows.Get(nil, s.Index, key)
	if err != nil {
		return false, failed(s, err)
	}
	if !ok {
		return false, nil
	}
	more, err := p.take(ctx, s, key, b, nil)
	if err != nil {
		return false, failed(s, err)
	}
	return !more, v.stillOf(s)
}

// firstEnd returns the end of the first window at or behind a key that may have rows.
func (v *View) firstEnd(s *Store, at []byte) (end int64, ok bool, err error) {
	prefix, ok, err := v.rows.Group(s.Index, at)
	if err != nil || !ok {
		return 0, false, failed(s, err)
	}
	end, _, ok = store.ParseWindowKey(prefix)
	return end, ok, nil
}
