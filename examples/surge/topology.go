package main

import (
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// Names of the topics. All are keyed by cell, so that what belongs to one cell is in the same partition of each.
const (
	pingsTopic    = "driver-pings"
	requestsTopic = "ride-requests"
	surgeTopic    = "surge-by-cell"
)

// pingEvery is how often a driver without a passenger says where they are.
const pingEvery = 5 * time.Second

// Ping says that a free driver is in the cell.
type Ping struct {
	Driver int       `json:"driver"`
	At     time.Time `json:"at"`
}

// When is the event time.
func (p Ping) When() time.Time { return p.At }

// Request says that somebody in the cell wants to be driven.
type Request struct {
	Rider string    `json:"rider"`
	At    time.Time `json:"at"`
}

// When is the event time.
func (r Request) When() time.Time { return r.At }

// Activity is what happened in one cell in one window.
type Activity struct {
	Pings    int64 `json:"pings"`
	Requests int64 `json:"requests"`
}

// Add returns both together.
func (a Activity) Add(b Activity) Activity {
	return Activity{a.Pings + b.Pings, a.Requests + b.Requests}
}

// Surge is how many drivers the riders of one cell compete for.
type Surge struct {
	End      time.Time `json:"end"` // of the window
	Drivers  float64   `json:"drivers"`
	Requests int64     `json:"requests"`
	Ratio    float64   `json:"ratio"` // requests per driver; with less than one driver, requests
}

// windows are the parameters of time.
type windows struct {
	size, hop  time.Duration
	outOfOrder time.Duration // how much later than younger records a record may come
	idleAfter  time.Duration // a partition that is silent for so long holds nobody up
}

// surge is the topology. A window ends every hop and looks back by its size. It is shown when the watermark has passed its
// end, which every record of any cell helps to move: a cell that falls silent gets its last windows in time, and then
// none, which is what idle means.
func surge(w windows) *topology.Topology {
	t := topology.New("surge")
	times := []watermark.Option{watermark.OutOfOrderness(w.outOfOrder), watermark.IdleAfter(w.idleAfter)}
	supply := t.Stream[string, Ping](pingsTopic).
		Timestamps(Ping.When, times...).
		Map(func(Ping) Activity { return Activity{Pings: 1} })
	demand := t.Stream[string, Request](requestsTopic).
		Timestamps(Request.When, times...).
		Map(func(Request) Activity { return Activity{Requests: 1} })
	supply.Merge(demand).
		Window(window.Hopping(w.size, w.hop)).
		Aggregate("activity", topology.Fold(Activity.Add).Merge(Activity.Add)).
		Map(func(p topology.Pane[string, Activity]) Surge { return surgeOf(p.Value, p.End, w.size) }).
		To(surgeTopic)
	return t
}

// surgeOf turns counts into a ratio.
func surgeOf(a Activity, end int64, size time.Duration) Surge {
	drivers := float64(a.Pings) * pingEvery.Seconds() / size.Seconds()
	return Surge{
		End: time.UnixMilli(end).UTC(), Drivers: drivers, Requests: a.Requests,
		Ratio: float64(a.Requests) / max(drivers, 1),
	}
}
