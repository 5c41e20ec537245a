package workload

import (
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// EventEnds is the number of inputs that end a run: enough to reach every partition of a topic with a handful.
const EventEnds = 32

// What becomes of a draw of one in a thousand.
const (
	undecodable = 1
	resentLong  = undecodable + 1 // of an event that may be older than the horizon
	resent      = resentLong + 9
)

// EventGenerator makes the inputs of the workload events. Their times run ahead by Step on average; some lie so far back
// that windows refuse them, a few so far that their ids are not looked up any more. One in a hundred is sent again,
// through whatever partition. One goroutine uses it.
type EventGenerator struct {
	topic string
	step  int64
	users int64
	rng   *rand.Rand
	now   int64
	n     int64
	sent  []Event // the last ones
}

const remembered = 4000

// NewEventGenerator returns a generator. A user has an event every 40 minutes, so the step says how many there are.
func NewEventGenerator(topic string, step time.Duration, rng *rand.Rand) *EventGenerator {
	return &EventGenerator{
		topic: topic, step: step.Milliseconds(), users: max(1, int64(40*time.Minute/step)), rng: rng, now: EventStart().UnixMilli(),
	}
}

// Next returns the next input.
func (g *EventGenerator) Next() (Input, error) {
	draw := g.rng.IntN(1000)
	switch {
	case draw < undecodable:
		g.n++
		return Input{g.topic, fmt.Appendf(nil, "bad%d", g.n), []byte(`{"id":`)}, nil
	case draw < resent && len(g.sent) > 0:
		recent := g.sent[max(0, len(g.sent)-200):]
		if draw < resentLong {
			recent = g.sent
		}
		return g.input(recent[g.rng.IntN(len(recent))])
	}
	g.n++
	g.now += g.rng.Int64N(2*g.step + 1)
	e := Event{
		ID: g.n, User: fmt.Sprint("u", g.rng.Int64N(g.users)), Time: g.now - g.lag(), Amount: 1 + g.rng.Int64N(1000),
	}
	if g.sent = append(g.sent, e); len(g.sent) > 2*remembered {
		g.sent = slices.Clone(g.sent[remembered:])
	}
	return g.input(e)
}

// lag returns how far an event lies behind the newest one, in ms.
func (g *EventGenerator) lag() int64 {
	within := func(d time.Duration) int64 { return g.rng.Int64N(d.Milliseconds()) }
	switch draw := g.rng.IntN(100); {
	case draw < 80:
		return within(EventDelay)
	case draw < 92:
		return EventDelay.Milliseconds() + within(EventLateness)
	case draw < 99:
		return (EventDelay + EventLateness).Milliseconds() + within(3*TumblingSize)
	}
	return EventHorizon.Milliseconds() + within(2*EventHorizon)
}

func (g *EventGenerator) input(e Event) (Input, error) {
	v, err := json.Marshal(e)
	return Input{g.topic, fmt.Appendf(nil, "p%d", g.rng.IntN(64)), v}, err
}

// Ends returns the inputs that let every window close.
func (g *EventGenerator) Ends() ([]Input, error) {
	far := EventStart().UnixMilli() + 2*(g.now-EventStart().UnixMilli()) + (1000 * time.Hour).Milliseconds()
	var out []Input
	for i := range EventEnds {
		v, err := json.Marshal(Event{ID: -1, Time: far, End: true})
		if err != nil {
			return nil, err
		}
		out = append(out, Input{g.topic, fmt.Appendf(nil, "end%d", i), v})
	}
	return out, nil
}
