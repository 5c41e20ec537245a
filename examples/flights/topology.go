package main

import (
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

// Totals is what is known of a carrier or of a pair of airports.
type Totals struct {
	Flights  int64 `json:"flights"`
	Departed int64 `json:"departed"`  // with a known delay
	DelayMin int64 `json:"delay_min"` // sum over the departed, early ones count negative
}

// Add counts one more flight.
func (t Totals) Add(f Flight) Totals {
	t.Flights++
	if f.Delay != nil {
		t.Departed++
		t.DelayMin += *f.Delay
	}
	return t
}

// MeanDelay is the mean departure delay in minutes, 0 if nothing departed.
func (t Totals) MeanDelay() float64 {
	if t.Departed == 0 {
		return 0
	}
	return float64(t.DelayMin) / float64(t.Departed)
}

// The topics, all of them behind the app's id so that several apps can use one cluster. The last one is the app's own.
func inputTopic(app string) string   { return app + "-departures" }
func carrierTopic(app string) string { return app + "-by-carrier" }
func routeTopic(app string) string   { return app + "-by-route" }
func hourTopic(app string) string    { return app + "-by-hour" }
func lateTopic(app string) string    { return app + "-late" }

const (
	outOfOrder = 30 * time.Minute // how much later than flights scheduled after it a flight may be seen without being late
	lateness   = 2 * time.Hour    // how long an hour is corrected after that
)

// flightTotals counts every flight three times. Either KeyBy sends the flights through a repartition topic, so that all
// flights of one carrier, or of one pair of airports, meet in one task. Those of one airport are in one partition of the
// input already, since it is their key: the hours are counted where the flights are read. What comes too late for its
// hour is in the late topic.
func flightTotals(app string) *topology.Topology {
	t := topology.New(app)
	flights := t.Stream[string, Flight](inputTopic(app)).
		Timestamps(Flight.When, watermark.OutOfOrderness(outOfOrder))
	flights.KeyBy("carrier", func(f Flight) string { return f.Carrier }).
		Aggregate("carrier-totals", topology.Fold(Totals.Add)).
		To(carrierTopic(app))
	flights.KeyBy("route", Flight.Route).
		Aggregate("route-totals", topology.Fold(Totals.Add)).
		To(routeTopic(app))
	flights.Window(window.Tumbling(time.Hour), window.AllowedLateness(lateness)).
		Aggregate("airport-hours", topology.Fold(Totals.Add)).
		To(hourTopic(app))
	return t
}
