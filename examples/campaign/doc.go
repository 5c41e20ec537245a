// Command campaign totals ad events per campaign, live: the main example of Tidemark.
//
//	go run ./examples/campaign                          # on a broker inside the program
//	go run ./examples/campaign -brokers localhost:9092  # on a real Kafka
//	go run ./examples/campaign -for 10s -check          # end by itself, compare with the input
//
// It produces ad events, runs two instances of one app on them and shows the totals as they are committed,
// with what the instances are doing. Stop it with Ctrl-C, start it again: the totals go on where they were,
// because events, state and totals moved in the same transactions. With -brokers the same holds for kill -9; the
// broker inside the program dies with it and may lose its last moments (then remove the directory it names).
//
// topology.go is the part a service would write; the rest is the stage around it.
package main
