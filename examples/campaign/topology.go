package main

import "github.com/tidemark/tidemark/topology"

// Names of the topics. Both are the user's; everything else the app makes for itself.
const (
	eventsTopic = "ad-events"
	totalsTopic = "campaign-totals"
)

// AdEvent is one impression or click.
type AdEvent struct {
	ID       string `json:"id"`
	Campaign string `json:"campaign"`
	Kind     string `json:"kind"` // impression or click
	Micros   int64  `json:"micros"`
	Test     bool   `json:"test,omitzero"` // traffic of the advertiser itself, not billed
}

// Billable says whether the event counts.
func (e AdEvent) Billable() bool { return !e.Test }

// CampaignID is the key the totals are kept by.
func (e AdEvent) CampaignID() string { return e.Campaign }

// Totals are what a campaign has had.
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

// campaignTotals is the topology. KeyBy is a cut: events travel through a repartition topic to the instance
// that keeps their campaign.
func campaignTotals() *topology.Topology {
	t := topology.New("campaign-metrics")
	t.Stream[string, AdEvent](eventsTopic).
		Filter(AdEvent.Billable).
		KeyBy("by-campaign", AdEvent.CampaignID).
		Aggregate("campaign-totals", topology.Fold(Totals.Add)).
		To(totalsTopic)
	return t
}
