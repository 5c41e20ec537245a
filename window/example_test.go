package window_test

import (
	"fmt"
	"time"

	"github.com/tidemark/tidemark/window"
)

func ExampleWindow_Assign() {
	w := window.Hopping(10*time.Minute, 5*time.Minute)
	at := time.Date(2026, 3, 29, 12, 7, 0, 0, time.UTC)
	for _, b := range w.Assign(nil, at.UnixMilli()) {
		fmt.Println(time.UnixMilli(b.Start).UTC().Format(time.TimeOnly), time.UnixMilli(b.End).UTC().Format(time.TimeOnly))
	}
	// Output:
	// 12:00:00 12:10:00
	// 12:05:00 12:15:00
}

func ExampleDay() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	day := window.Day(berlin).Assign(nil, time.Date(2026, 3, 29, 12, 0, 0, 0, berlin).UnixMilli())[0]
	fmt.Println(time.Duration(day.End-day.Start) * time.Millisecond)
	// Output: 23h0m0s
}

// A counter of one key: the window [0,10s) fires on time, and once more for a late record. Nothing was stored when it
// fired on time.
func ExampleConfig() {
	c, err := window.New(window.Tumbling(10*time.Second), window.AllowedLateness(time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	var state window.State // what is stored, with the count
	count := 0
	b := c.Window.Assign(nil, 3000)[0]

	add := func(w, ts int64) {
		d := c.Add(&state, b, w, ts)
		if d.Refuse != window.Accepted {
			fmt.Println(ts, d.Refuse)
			return
		}
		if d.Settled {
			state.Hash = window.Hash([]byte{byte(count)})
		}
		count++
		if d.Fire {
			p, ok := c.Fire(&state, b, d, w, window.Hash([]byte{byte(count)}))
			fmt.Println(p.Timing, p.Index, count, ok)
		}
	}
	add(0, 3000)
	add(3000, 4000)
	fired := state
	if d := c.OnWatermark(&fired, b, 4000, 9999); d.Fire {
		p, ok := c.Fire(&fired, b, d, 9999, window.Hash([]byte{byte(count)}))
		fmt.Println(p.Timing, p.Index, count, ok)
	}
	add(12_000, 5000)
	add(70_000, 6000)
	// Output:
	// ON_TIME 0 2 true
	// LATE 1 3 true
	// 6000 expired
}
