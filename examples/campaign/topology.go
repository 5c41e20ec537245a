package main

import (
	"time"

	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
	"github.com/tidemark/tidemark/window"
)

const appName = "campaign-metrics"

// Names of the topics. All but the last are the user's.
const (
	eventsTopic  = "ad-events"
	totalsTopic  = "campaign-totals"
	minutesTopic = "campaign-minutes"
	lateTopic    = appName + "-late" // events that came too late to be counted, kept by the app
)

const (
	outOfOrder = 30 * time.Second // how much later than younger events an event may come and still be on time
	lateness   = 10 * time.Minute // how long a minute is corrected after that
	// Ids are remembered for as long as an event can still be counted somewhere.
	horizon = lateness + time.Minute
)

// AdEvent is one impression or click.
type AdEvent struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"` // when it happened, not when it was sent
	Campaign string    `json:"campaign"`
	Kind     string    `json:"kind"` // impression or click
	Micros   int64     `json:"micros"`
	Test     bool      `json:"test,omitzero"` // traffic of the advertiser itself, not billed
}

// When is the event time.
func (e AdEvent) When() time.Time { return e.At }

// Billable says whether the event counts.
func (e AdEvent) Billable() bool { return !e.Test }

// CampaignID is the key the totals are kept by.
func (e AdEvent) CampaignID() string { return e.Campaign }

// EventID tells the copies of an event from other events.
func (e AdEvent) EventID() string { return e.ID }

// Totals are what a campaign has had, in one minute or ever.
type Totals struct {
	Impressions int64 `json:"impressions"`
	Clicks      int64 `json:"clicks"`
	Micros      int64 `json:"micros"` // spend, in millionths
}

// Add returns the totals with one event more.
func (t Totals) Add(e AdEvent) Totals {
	if e.Kind == "click" {
		t.Clicks++
	} else {
		t.Impressions++
	}
	t.Micros += e.Micros
	return t
}

// campaignMetrics is the topology. KeyBy is a cut: events travel through a repartition topic to the instance that keeps
// their campaign. A minute is shown every so often while it fills, once more when the watermark has passed its end, and
// after every event that comes late; events later than that are in the late topic.
func campaignMetrics(early time.Duration) *topology.Topology {
	t := topology.New(appName)
	events := t.Stream[string, AdEvent](eventsTopic).
		Timestamps(AdEvent.When, watermark.OutOfOrderness(outOfOrder)).
		Filter(AdEvent.Billable).
		KeyBy("by-campaign", AdEvent.CampaignID).
		Dedup("event-ids", AdEvent.EventID, horizon)
	events.Aggregate("campaign-totals", topology.Fold(Totals.Add)).
		To(totalsTopic)
	events.Window(window.Tumbling(time.Minute), window.AllowedLateness(lateness), window.Early(window.Every(early))).
		Aggregate("campaign-minutes", topology.Fold(Totals.Add)).
		To(minutesTopic)
	return t
}
