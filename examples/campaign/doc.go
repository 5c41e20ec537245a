// Command campaign counts ad events per campaign, in all and minute by minute, live: the main example of Tidemark.
//
//	go run ./examples/campaign                          # on a broker inside the program
//	go run ./examples/campaign -brokers localhost:9092  # on a real Kafka
//	go run ./examples/campaign -for 10s -check          # end by itself, compare with the input
//	go run ./examples/campaign -snapshots DIR           # copy the state to a directory, restore it from there
//
//	curl -s localhost:7070/v1/stores/campaign-totals/keys/spring-sale   # meanwhile, elsewhere
//
// It produces ad events and runs two instances of one app on them. The events come out of order, some minutes late, some
// twice. Copies are dropped. A minute is shown every ten seconds while it fills (EARLY), when its events should be there
// (ON_TIME), and again when one comes late (LATE); events that come more than ten minutes later are set aside. Below
// these lines stand the totals as they are committed, with what the instances are doing.
//
// Stop it with Ctrl-C, start it again: everything goes on where it was, because events, state and results moved in the
// same transactions. With -brokers the same holds for kill -9; the broker inside the program dies with it and may lose
// its last moments (then remove the directory it names).
//
// With -snapshots the state is copied every ten seconds, as to a bucket. Remove the state directories of the instances, which
// it names, and start again: it says for each task what it was restored from, and how long that took.
//
// Both instances answer queries about the totals and the minutes, each about all of them.
//
// topology.go is the part a service would write; the rest is the stage around it.
package main
