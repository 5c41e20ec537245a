package main

import "github.com/tidemark/tidemark/topology"

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

// The topics, all of them behind the app's id so that several apps can use one cluster.
func inputTopic(app string) string   { return app + "-departures" }
func carrierTopic(app string) string { return app + "-by-carrier" }
func routeTopic(app string) string   { return app + "-by-route" }

// flightTotals counts every flight twice: for its carrier and for its pair of airports. Either KeyBy sends the
// flights through a repartition topic, so that all flights of one carrier meet in one task.
func flightTotals(app string) *topology.Topology {
	t := topology.New(app)
	flights := t.Stream[string, Flight](inputTopic(app))
	flights.KeyBy("carrier", func(f Flight) string { return f.Carrier }).
		Aggregate("carrier-totals", topology.Fold(Totals.Add)).
		To(carrierTopic(app))
	flights.KeyBy("route", Flight.Route).
		Aggregate("route-totals", topology.Fold(Totals.Add)).
		To(routeTopic(app))
	return t
}
