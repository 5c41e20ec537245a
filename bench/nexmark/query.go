package nexmark

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/topology"
	"github.com/tidemark/tidemark/watermark"
)

// Input is the topic of the events of all kinds. Its records have no key.
const Input = "nexmark.events"

// patience is how long the watermark waits for events that come late. It is more than the longest delay, so that none is
// refused.
const patience = MaxDelay + time.Second

// Query is one query of the suite.
type Query struct {
	// Name is what the suite calls it, as in "q5".
	Name string
	// What is what it asks for.
	What string
	// ByClock says that the result depends on when events are processed.
	ByClock bool

	declare  func(bids bids, out string)
	evaluate func(input arrivals, emit func(Row))
}

// bids is what all queries begin with.
type bids = *topology.Stream[[]byte, Bid]

// arrivals are events with the time at which they are processed, in ms.
type arrivals = iter.Seq2[int64, Event]

// Queries returns all queries.
func Queries() []Query {
	return []Query{
		{Name: "q0", What: "pass through", declare: passThrough, evaluate: naivePassThrough},
		{Name: "q1", What: "currency conversion", declare: convert, evaluate: naiveConvert},
		{Name: "q2", What: "selection by auction", declare: selection, evaluate: naiveSelection},
		{Name: "q5", What: "hot items, 10 s every 2 s", declare: hotItems, evaluate: naiveHotItems},
		{Name: "q7", What: "highest bids of 10 s", declare: highestBids, evaluate: naiveHighestBids},
		{Name: "q11", What: "sessions of bidders", declare: sessions, evaluate: naiveSessions},
		{Name: "q12", What: "bids per 10 s of processing time", ByClock: true, declare: periods, evaluate: naivePeriods},
		{Name: "q14", What: "calculation", declare: calculate, evaluate: naiveCalculate},
		{Name: "q22", What: "parts of a URL", declare: splitURL, evaluate: naiveSplitURL},
	}
}

// Find returns the query of that name.
func Find(name string) (Query, error) {
	all := Queries()
	i := slices.IndexFunc(all, func(q Query) bool { return q.Name == name })
	if i < 0 {
		var names []string
		for _, q := range all {
			names = append(names, q.Name)
		}
		return Query{}, fmt.Errorf("nexmark: no query %q, want one of %s", name, strings.Join(names, ", "))
	}
	return all[i], nil
}

// Output returns the topic of the results.
func (q Query) Output() string { return "nexmark." + q.Name }

// Topology returns the query as an app. watch, unless nil, is shown every event.
func (q Query) Topology(app string, watch func(Event)) *topology.Topology {
	t := topology.New(app)
	events := t.Stream[[]byte, Event](Input, topology.With(codec.Bytes(), Codec())).
		Timestamps(Event.When, watermark.OutOfOrderness(patience))
	if watch != nil {
		events = events.Peek(watch)
	}
	q.declare(events.Filter(Event.isBid).Map(Event.bid), q.Output())
	return t
}

// Evaluate computes the output of a query with plain loops. input yields events with the times, in ms, at which they are
// processed; only queries by the clock look at these. Every window is complete at the end of the input.
func (q Query) Evaluate(input iter.Seq2[int64, Event], emit func(Row)) { q.evaluate(input, emit) }

// AtOnce gives events a time of processing of 0, for queries that do not look at it.
func AtOnce(events iter.Seq[Event]) iter.Seq2[int64, Event] {
	return func(yield func(int64, Event) bool) {
		for e := range events {
			if !yield(0, e) {
				return
			}
		}
	}
}
