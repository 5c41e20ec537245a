// Package tidemark runs stateful stream processing on Kafka inside a Go service: streams, tables and custom
// processors over keyed state that survives anything, scaled by starting more instances.
//
// A service declares a topology (package topology), makes an App of it and runs it:
//
//	t := topology.New("orders-by-customer")
//	t.Stream[string, Order]("orders").
//		KeyBy("by-customer", Order.CustomerID).
//		Count("orders-per-customer").
//		To("order-counts")
//	app, err := tidemark.New(t, tidemark.Config{Brokers: []string{"localhost:9092"}, StateDir: "/var/lib/orders"})
//	if err != nil {
//		return err
//	}
//	return app.Run(ctx)
//
// Input offsets, state and output of every commit move in one Kafka transaction, so a crash at any moment
// neither loses nor repeats anything that a read_committed consumer can see. Aborts, fencing, rebalances and
// unclear answers of the broker are states of the engine and never leave Run; an error that does names what to
// change.
//
// The package holds the App, its configuration and its errors. It must not know about operators or about the
// broker's protocol: those are topology, processor and internal/engine. All exported methods of App may be
// called from any goroutine.
package tidemark
