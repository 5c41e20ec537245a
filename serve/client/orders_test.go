package client_test

import (
	"context"
	"errors"
	"log"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
	"github.com/tidemark/tidemark/serve"
	"github.com/tidemark/tidemark/topology"
)

// Order is what the examples count.
type Order struct {
	Customer string
	Cents    int64
}

// orders is an app that runs in this process, with a broker of its own, and answers questions.
type orders struct {
	// Endpoint is where it answers.
	Endpoint string
	kafka    *kgo.Client
	stop     func()
}

// startOrders starts an app that sums up orders by customer in the store "totals".
func startOrders() *orders {
	broker, err := embedded.Start(embedded.Options{Topics: map[string]int{"orders": 4}})
	check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)

	t := topology.New("orders")
	t.Stream[string, Order]("orders").
		Sum("totals", func(o Order) int64 { return o.Cents })
	app, err := tidemark.New(t, tidemark.Config{
		Brokers: broker.Addrs(), CommitInterval: 10 * time.Millisecond, Endpoint: l.Addr().String(),
	})
	check(err)
	server, err := serve.New(app, serve.Config{})
	check(err)

	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { check(app.Run(ctx)) })
	all.Go(func() { check(server.Serve(ctx, l)) })
	<-app.Ready()
	kafka, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	check(err)
	return &orders{Endpoint: l.Addr().String(), kafka: kafka, stop: func() {
		kafka.Close()
		cancel()
		all.Wait()
		broker.Close()
	}}
}

// Put produces an order, and returns where it is.
func (o *orders) Put(customer, order string) (topic string, partition int32, offset int64) {
	r, err := o.kafka.ProduceSync(context.Background(), &kgo.Record{Topic: "orders", Key: []byte(customer), Value: []byte(order)}).First()
	check(err)
	return r.Topic, r.Partition, r.Offset
}

func check(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}
