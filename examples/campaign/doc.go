// Command campaign totals ad events per campaign, live: the main example of Tidemark.
//
//	go run ./examples/campaign                          # on a broker inside the program
//	go run ./examples/campaign -brokers localhost:9092  # on a real Kafka
//	go run ./examples/campaign -for 10s -check          # end by itself, compare with the input
//
// It produces ad events, runs two instances of one app on them and shows the totals as they are committed,
// with what the instances are doing. Stop it with Ctrl-C or kill it, start it again: the totals go on where
// they were, because events, state and totals moved in the same transactions.
//
// topology.go is the part a service would write; the rest is the stage around it.
package main
