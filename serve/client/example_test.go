package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tidemark/tidemark/query"
	"github.com/tidemark/tidemark/serve/client"
)

// A service asks another one, which keeps totals by customer, for what it has just ordered.
func Example() {
	app := startOrders() // an app with the store "totals", of strings to int64, that answers at app.Endpoint
	defer app.stop()

	c, err := client.New(client.Config{Endpoints: []string{app.Endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	totals, err := client.Store[string, int64](c, "totals", nil, nil)
	if err != nil {
		log.Fatal(err)
	}

	// A read reflects what the session has written.
	session := client.NewSession(nil)
	session.Wrote(app.Put("ada", `{"Customer":"ada","Cents":1250}`))
	session.Wrote(app.Put("ada", `{"Customer":"ada","Cents":750}`))
	total, err := totals.In(session).Get(context.Background(), "ada")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(total.Value, total.Found)
	// Output: 2000 true
}

func ExampleReader_Prefix() {
	app := startOrders()
	defer app.stop()
	c, err := client.New(client.Config{Endpoints: []string{app.Endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	totals, err := client.Store[string, int64](c, "totals", nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	session := client.NewSession(nil)
	for _, customer := range []string{"eu-ada", "us-bob", "eu-cyd"} {
		session.Wrote(app.Put(customer, `{"Cents":100}`))
	}

	for row, err := range totals.In(session).Prefix(context.Background(), "eu-", client.Filter("value >= 100")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Key, row.Value)
	}
	// Unordered output:
	// eu-ada 100
	// eu-cyd 100
}

// The rows there are come first, then every change. A program that keeps Token goes on where it was, also after a restart.
func ExampleReader_WatchKey() {
	app := startOrders()
	defer app.stop()
	c, err := client.New(client.Config{Endpoints: []string{app.Endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	totals, err := client.Store[string, int64](c, "totals", nil, nil)
	if err != nil {
		log.Fatal(err)
	}

	for event, err := range totals.WatchKey(context.Background(), "ada") {
		if err != nil {
			log.Fatal(err)
		}
		for _, row := range event.Rows {
			fmt.Println("ada has ordered for", row.Value)
		}
		switch {
		case event.Complete:
			fmt.Println("this is how it stands")
			app.Put("ada", `{"Cents":300}`)
		case len(event.Rows) > 0:
			return // enough seen
		}
	}
	// Output:
	// this is how it stands
	// ada has ordered for 300
}

// Errors are *query.Error, with the reason, and what is known of the place.
func ExampleStore() {
	app := startOrders()
	defer app.stop()
	c, err := client.New(client.Config{Endpoints: []string{app.Endpoint}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	totals, err := client.Store[int64, int64](c, "totals", nil, nil)
	if err != nil {
		log.Fatal(err)
	}

	_, err = totals.Get(context.Background(), 7)
	fmt.Println(errors.Is(err, &query.Error{Reason: query.KeyMalformed}))
	fmt.Println(err)
	// Output:
	// true
	// query: KEY_MALFORMED: the keys of store totals are string, the reader's are int64: give Store the type or the codec of the app
}
