package window

import (
	"math/rand/v2"
	"testing"
	"time"
)

func location(t testing.TB, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestCalendar(t *testing.T) {
	for _, c := range []struct {
		why, zone       string
		make            func(*time.Location) Window
		ts, start, last string // last is the end
	}{
		{"W-CAL-DAY, 23 hours", "Europe/Berlin", Day, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"W-CAL-DAY, the day before", "Europe/Berlin", Day, "2026-03-28T22:59:59.999Z", "2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z"},
		{"25 hours", "Europe/Berlin", Day, "2026-10-25T22:59:59.999Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"midnight is skipped: the first instant that exists", "America/Sao_Paulo", Day, "2017-10-15T03:00:00Z", "2017-10-15T03:00:00Z", "2017-10-16T02:00:00Z"},
		{"and the day before it", "America/Sao_Paulo", Day, "2017-10-15T02:59:59.999Z", "2017-10-14T03:00:00Z", "2017-10-15T03:00:00Z"},
		{"two midnights: the earlier", "America/Havana", Day, "2023-11-05T04:00:00Z", "2023-11-05T04:00:00Z", "2023-11-06T05:00:00Z"},
		{"in the hour between them", "America/Havana", Day, "2023-11-05T04:59:59Z", "2023-11-05T04:00:00Z", "2023-11-06T05:00:00Z"},
		{"at the second", "America/Havana", Day, "2023-11-05T05:00:00Z", "2023-11-05T04:00:00Z", "2023-11-06T05:00:00Z"},
		{"back from midnight to 23:00: one midnight", "America/Sao_Paulo", Day, "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
		{"back from 00:01 to 23:01: the clock shows the day before again", "America/St_Johns", Day, "2010-11-07T03:00:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},
		{"a day that never was", "Pacific/Apia", Day, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"after it", "Pacific/Apia", Day, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"offset of 5:45", "Asia/Kathmandu", Day, "2024-01-01T18:15:00Z", "2024-01-01T18:15:00Z", "2024-01-02T18:15:00Z"},
		{"UTC", "UTC", Day, "1969-12-31T23:59:59.999Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"a short month", "America/New_York", Month, "2024-03-01T04:59:59Z", "2024-02-01T05:00:00Z", "2024-03-01T05:00:00Z"},
		{"a month with a clock change", "America/New_York", Month, "2024-03-10T12:00:00Z", "2024-03-01T05:00:00Z", "2024-04-01T04:00:00Z"},
		{"a quarter", "Europe/London", Quarter, "2024-06-30T22:59:59Z", "2024-03-31T23:00:00Z", "2024-06-30T23:00:00Z"},
		{"a leap year", "UTC", Year, "2024-12-31T12:00:00Z", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"a year long ago", "UTC", Year, "0001-05-05T00:00:00Z", "0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z"},
		{"beyond the table", "Europe/Berlin", Day, "2526-07-05T12:00:00Z", "2526-07-04T22:00:00Z", "2526-07-05T22:00:00Z"},
		{"where the table ends", "Europe/Berlin", Day, "2099-12-31T23:30:00Z", "2099-12-31T23:00:00Z", "2100-01-01T23:00:00Z"},
		{"week from Monday", "Europe/Berlin", monday, "2026-03-29T21:59:59Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"week from Sunday", "America/New_York", sunday, "2026-03-08T05:00:00Z", "2026-03-08T05:00:00Z", "2026-03-15T04:00:00Z"},
	} {
		w := c.make(location(t, c.zone))
		want := Bounds{instant(t, c.start), instant(t, c.last)}
		have := w.Assign(nil, instant(t, c.ts))
		if len(have) != 1 || have[0] != want {
			t.Errorf("%s: %v, want %v", c.why, have, want)
			continue
		}
		if w.Of(want.End) != want || w.StartingAt(want.Start) != want {
			t.Errorf("%s: ends %v, starts %v, want %v", c.why, w.Of(want.End), w.StartingAt(want.Start), want)
		}
	}
}

func monday(l *time.Location) Window { return Week(l, time.Monday) }
func sunday(l *time.Location) Window { return Week(l, time.Sunday) }

// TestCalendarDayOfRecords is W-CAL-DAY.
func TestCalendarDayOfRecords(t *testing.T) {
	w := Day(location(t, "Europe/Berlin"))
	n := map[Bounds]int{}
	for ts := instant(t, "2026-03-28T00:00:00Z"); ts < instant(t, "2026-03-30T00:00:00Z"); ts += 3_600_000 {
		n[w.Assign(nil, ts)[0]]++
	}
	if day := w.Of(instant(t, "2026-03-29T22:00:00Z")); n[day] != 23 || day.Start != instant(t, "2026-03-28T23:00:00Z") {
		t.Errorf("%v: %d records", day, n[day])
	}
}

// TestCalendarTwin compares with a walk through time: a period begins when the wall clock of the standard library shows,
// for the first time, a date in it or after it.
func TestCalendarTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	zones := []string{"Europe/Berlin", "America/Havana", "America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "Asia/Beirut",
		"Australia/Lord_Howe", "Africa/Casablanca", "America/Scoresbysund", "Asia/Kolkata", "America/Asuncion", "Antarctica/Troll"}
	kinds := map[Kind]func(*time.Location) Window{KindDay: Day, KindWeek: monday, KindMonth: Month, KindQuarter: Quarter, KindYear: Year}
	for _, name := range zones {
		loc := location(t, name)
		days := Day(loc)
		from := time.Date(1975+r.IntN(55), time.Month(1+r.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
		for _, make := range kinds {
			w := make(loc)
			var highest int64 = minTime
			var start int64 = minTime
			for at := from; at.Before(from.AddDate(1, 1, 0)); at = at.Add(30 * time.Minute) {
				// The number of the period that the clock shows.
				y, m, d := at.In(loc).Date()
				date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
				var i int64
				switch w.Kind() {
				case KindDay:
					i = date.Unix() / 86400
				case KindWeek:
					i = floorDiv(date.Unix()/86400+3, 7)
				case KindMonth:
					i = int64(y)*12 + int64(m)
				case KindQuarter:
					i = int64(y)*4 + int64(m-1)/3
				case KindYear:
					i = int64(y)
				}
				if i > highest {
					if highest != minTime {
						start = at.UnixMilli()
					}
					highest = i
				}
				if start == minTime {
					continue
				}
				have := w.Assign(nil, at.UnixMilli())[0]
				if have.Start != start || !have.Contains(at.UnixMilli()) {
					t.Fatalf("seed %d: %v at %v: %v, want a start of %v", seed, w, at, have, time.UnixMilli(start).In(loc))
				}
				if w.Kind() == KindDay {
					continue
				}
				if day := days.Assign(nil, at.UnixMilli())[0]; day.Start < have.Start || day.End > have.End {
					t.Fatalf("seed %d: %v at %v: %v does not hold the day %v", seed, w, at, have, day)
				}
			}
		}
	}
}

// TestCalendarMonths compares the arithmetic of days and months with the standard library.
func TestCalendarMonths(t *testing.T) {
	for _, years := range [][2]int{{-9, 9}, {1580, 1610}, {1890, 2110}, {399_990, 400_010}} {
		for day := time.Date(years[0], 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < years[1]; day = day.AddDate(0, 0, 1) {
			n := floorDiv(day.Unix(), secondsPerDay)
			m := monthOf(n)
			if want := int64(day.Year())*12 + int64(day.Month()) - 1; m != want {
				t.Fatalf("%v is in month %d, want %d", day, m, want)
			}
			if first := firstDay(m); n-first != int64(day.Day()-1) {
				t.Fatalf("the month of %v begins with day %d", day, first)
			}
		}
	}
}

func TestCalendarEndsOfTime(t *testing.T) {
	for _, w := range []Window{Day(time.UTC), Week(location(t, "Europe/Berlin"), time.Friday), Year(location(t, "Pacific/Apia"))} {
		for _, ts := range []int64{minTime, minTime + 1, maxTime - 1} {
			if b := w.Assign(nil, ts)[0]; !b.Contains(ts) {
				t.Errorf("%v of %d: %v", w, ts, b)
			}
		}
	}
	if b := Day(time.FixedZone("far", 40*3600)).Assign(nil, 0)[0]; b != (Bounds{-16 * 3600_000, 8 * 3600_000}) {
		t.Error(b)
	}
}

func TestRules(t *testing.T) {
	berlin, paris := Day(location(t, "Europe/Berlin")), Day(location(t, "Europe/Paris"))
	if a, b := berlin.Rules(), Year(location(t, "Europe/Berlin")).Rules(); a != b || len(a) != 16 {
		t.Error(a, b)
	}
	if berlin.Rules() == paris.Rules() {
		t.Error("Berlin and Paris had different rules in the seventies")
	}
	if Tumbling(time.Hour).Rules() != "" || Tumbling(time.Hour).Location() != nil || berlin.Location().String() != "Europe/Berlin" {
		t.Error("rules or location")
	}
}
