package window

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"time"
)

// The clock changes of these years are kept in a table. Others are looked up in the location.
const (
	tableFrom = 1900
	tableTo   = 2100
	rulesFrom = 1970 // before, packagings of the time zone database differ
)

// zone answers what clocks of a location show. It never changes once made.
type zone struct {
	loc    *time.Location
	rules  string
	lo, hi int64   // the table covers lo until hi, in seconds
	from   []int64 // seconds at which the offsets begin to hold
	offset []int64 // seconds east of Greenwich
	to     int64   // until when the last offset holds
}

func newZone(loc *time.Location) *zone {
	z := &zone{loc: loc}
	z.lo = time.Date(tableFrom, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	z.hi = time.Date(tableTo, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	since := time.Date(rulesFrom, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	sum := fnv.New64a()
	var b [16]byte
	for at := z.lo; at < z.hi; {
		from, to, off := z.look(at)
		if n := len(z.offset); n == 0 || z.offset[n-1] != off {
			z.from = append(z.from, from)
			z.offset = append(z.offset, off)
		}
		at, z.to = to, to
	}
	for i, off := range z.offset {
		if i+1 < len(z.from) && z.from[i+1] <= since {
			continue
		}
		binary.BigEndian.PutUint64(b[:8], uint64(max(z.from[i], since)))
		binary.BigEndian.PutUint64(b[8:], uint64(off))
		sum.Write(b[:])
	}
	z.rules = hex.EncodeToString(sum.Sum(nil))
	return z
}

// look returns since when and until when (exclusive) the offset of an instant holds, by the location itself.
func (z *zone) look(sec int64) (from, to, off int64) {
	t := time.Unix(sec, 0).In(z.loc)
	_, o := t.Zone()
	a, b := t.ZoneBounds()
	from, to = minTime, maxTime
	if !a.IsZero() {
		from = a.Unix()
	}
	if !b.IsZero() {
		// Far ahead the bounds are those of a year counted as 365 days, so that the last day of a leap year ends before it
		// begins. No clock changes on that day.
		if to = b.Unix(); to <= sec {
			to = sec + secondsPerDay
		}
	}
	return from, to, int64(o)
}

// at is look with the table.
func (z *zone) at(sec int64) (from, to, off int64) {
	if sec < z.lo || sec >= z.hi {
		return z.look(sec)
	}
	i, found := slices.BinarySearch(z.from, sec)
	if !found {
		i--
	}
	from, to, off = z.from[i], z.to, z.offset[i]
	if i+1 < len(z.from) {
		to = z.from[i+1]
	}
	return from, to, off
}

// reaches returns the first second at which the wall clock, read as if it were in Greenwich, shows local or later.
func (z *zone) reaches(local int64) int64 {
	// No clock is ahead of Greenwich by more than this; zones made up with more have a single offset.
	at := local - 26*60*60
	for {
		from, to, off := z.at(at)
		if sec := max(local-off, from); sec < to || to == maxTime {
			return sec
		}
		at = to
	}
}
