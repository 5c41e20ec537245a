package window

import (
	"fmt"
	"time"
)

const secondsPerDay = 24 * 60 * 60

// calendar divides time into periods by the wall clock of a zone. A period begins at the first instant at which the
// wall clock shows the midnight it begins with or a later time: at the earlier of two midnights where clocks are set
// back, at the first instant that exists where midnight is skipped. It ends where the next one begins, so days have 23
// to 25 hours around clock changes, and a day that a zone skipped altogether is nowhere.
type calendar struct {
	kind  Kind
	first time.Weekday // of weeks
	zone  *zone
}

func newCalendar(k Kind, loc *time.Location, first time.Weekday) Window {
	w := Window{kind: k}
	switch {
	case loc == nil:
		w.fail("no time zone")
	case loc == time.Local:
		w.fail("the zone of the machine is not the same everywhere: name one")
	case first < time.Sunday || first > time.Saturday:
		w.fail("no weekday: %d", int(first))
	default:
		w.cal = &calendar{kind: k, first: first, zone: newZone(loc)}
	}
	return w
}

// Day returns the days of a time zone, from midnight to midnight: 23 or 25 hours long when clocks change. The zone must
// be named (time.LoadLocation, whose zones this package brings along, or time.UTC); time.Local is refused.
func Day(loc *time.Location) Window { return newCalendar(KindDay, loc, 0) }

// Week returns the weeks of a time zone, beginning with the midnight of the given day.
func Week(loc *time.Location, first time.Weekday) Window { return newCalendar(KindWeek, loc, first) }

// Month returns the months of a time zone.
func Month(loc *time.Location) Window { return newCalendar(KindMonth, loc, 0) }

// Quarter returns the quarters of a time zone: those beginning with January, April, July and October.
func Quarter(loc *time.Location) Window { return newCalendar(KindQuarter, loc, 0) }

// Year returns the years of a time zone.
func Year(loc *time.Location) Window { return newCalendar(KindYear, loc, 0) }

// Location returns the time zone of a calendar window, nil for other kinds.
func (w Window) Location() *time.Location {
	if w.cal == nil {
		return nil
	}
	return w.cal.zone.loc
}

// Rules returns a checksum of the clock changes of a calendar window's zone from 1970 to 2099, "" for other kinds.
// Releases of the time zone database change it if, and only if, they change when the zone's clocks show what.
func (w Window) Rules() string {
	if w.cal == nil {
		return ""
	}
	return w.cal.zone.rules
}

// String is canonical: "week from Monday in Europe/Berlin, rules 0c1f…".
func (c *calendar) String() string {
	s := c.kind.String()
	if c.kind == KindWeek {
		s += " from " + c.first.String()
	}
	return fmt.Sprintf("%s in %s, rules %s", s, c.zone.loc, c.zone.rules)
}

// period returns the period that holds ts. The period that the wall clock names has begun at ts, but where clocks are
// set back over a midnight the next one may have begun as well.
func (c *calendar) period(ts int64) Bounds {
	sec := floorDiv(ts, 1000)
	_, _, off := c.zone.at(sec)
	i := c.index(floorDiv(sec+off, secondsPerDay))
	start, end := c.start(i), c.start(i+1)
	for end <= sec {
		i++
		start, end = end, c.start(i+1)
	}
	return Bounds{millisOf(start), millisOf(end)}
}

// start returns the second at which period i begins.
func (c *calendar) start(i int64) int64 { return c.zone.reaches(c.day(i) * secondsPerDay) }

// index returns the number of the period that holds a day, day the first day of a period. Days are counted from
// 1970-01-01 of the wall clock.
func (c *calendar) index(day int64) int64 {
	switch c.kind {
	case KindWeek:
		// 1970-01-01 was a Thursday.
		return floorDiv(day+int64(time.Thursday)-int64(c.first), 7)
	case KindMonth:
		return monthOf(day)
	case KindQuarter:
		return floorDiv(monthOf(day), 3)
	case KindYear:
		return floorDiv(monthOf(day), 12)
	}
	return day
}

func (c *calendar) day(i int64) int64 {
	switch c.kind {
	case KindWeek:
		return i*7 + int64(c.first) - int64(time.Thursday)
	case KindMonth:
		return firstDay(i)
	case KindQuarter:
		return firstDay(i * 3)
	case KindYear:
		return firstDay(i * 12)
	}
	return i
}

// millisOf converts seconds, saturated.
func millisOf(sec int64) int64 {
	switch {
	case sec > maxTime/1000:
		return maxTime
	case sec < minTime/1000:
		return minTime
	}
	return sec * 1000
}

// The Gregorian calendar repeats every 400 years of 146,097 days. Counting years from March puts the leap day last.
const daysPerCycle = 146097

// marchDay is 0000-03-01 in days before 1970-01-01.
const marchDay = 719468

// monthOf returns the month that holds a day, counted from January of the year 0.
func monthOf(day int64) int64 {
	day += marchDay
	cycle := floorDiv(day, daysPerCycle)
	d := day - cycle*daysPerCycle
	year := (d - d/1460 + d/36524 - d/(daysPerCycle-1)) / 365
	d -= 365*year + year/4 - year/100
	return (cycle*400+year)*12 + (5*d+2)/153 + 2
}

// firstDay returns the first day of a month.
func firstDay(month int64) int64 {
	month -= 2
	year, m := floorDiv(month, 12), floorMod(month, 12)
	cycle := floorDiv(year, 400)
	y := year - cycle*400
	return cycle*daysPerCycle + 365*y + y/4 - y/100 + (153*m+2)/5 - marchDay
}
