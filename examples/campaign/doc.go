// Command campaign counts ad events per campaign, in all and minute by minute, live: the main example of Tidemark.
//
//	go run ./examples/campaign                          # on a broker inside the program
//	go run ./examples/campaign -brokers localhost:9092  # on a real Kafka
//	go run ./examples/campaign -for 10s -check          # end by itself, compare with the input
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
// Both instances answer queries about the totals and the minutes, each about all of them.
//
// topology.go is the part a service would write; the rest is the stage around it.
package main
