package nexmark

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
)

// An instance counts q12's periods by a clock that the test has in its hands: bids come in bursts, each well within a
// period, so that it is known when they are processed.
func TestEngineByClock(t *testing.T) {
	const partitions, burst = 4, 200
	q, err := Find("q12")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		network := embedded.NewNetwork()
		b, err := embedded.Start(embedded.Options{ListenFn: network.Listen, Topics: map[string]int{Input: partitions, q.Output(): partitions}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		client := []kgo.Opt{kgo.SeedBrokers(b.Addrs()...), kgo.Dialer(network.Dialer("test"))}
		app, err := tidemark.New(q.Topology("nexmark", nil), tidemark.Config{
			Brokers: b.Addrs(), Kafka: tidemark.Kafka{Opts: []kgo.Opt{kgo.Dialer(network.Dialer("app"))}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- app.Run(context.Background()) }()
		<-app.Ready()
		var input []arrival
		events := slices.Collect(Generate(Options{Events: 9 * burst, Seed: 5}))
		for i := range 9 {
			// At 2, 5 and 8 s of a period: what is read by then is processed within less than a second.
			into := time.Duration(time.Now().UnixMilli()%period.Milliseconds()) * time.Millisecond
			time.Sleep((period + time.Duration(2+3*(i%3))*time.Second - into) % period)
			now := time.Now().UnixMilli()
			part := events[i*burst : (i+1)*burst]
			for _, e := range part {
				input = append(input, arrival{now, e})
			}
			if _, err := Load(t.Context(), partitions, slices.Values(part), Event{Mark: start}, client...); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(period + time.Second)
		app.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var got []Row
		if err := Read(t.Context(), q.Output(), func(r Row) { got = append(got, r) }, client...); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, Row.Compare)
		compare(t, got, expected(q, each(input)))
	})
}
