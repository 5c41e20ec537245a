// Package kafkatest runs a real Apache Kafka broker for tests, verification and measurements: it
// fetches the broker's jars with Maven once, formats a data directory, starts the broker on
// loopback, waits until transactions work, and breaks it on purpose (Kill, Pause, Restart).
//
// It is for Unix systems with a Java 17 runtime and, until the jars are in the cache, Maven. It must
// never be imported by code that a user's service links.
//
// A Broker's process is watched by one goroutine that ends with the process; Stop and Kill wait for
// it. A Broker may be used from several goroutines, except that Restart, Stop and Kill exclude each
// other by a mutex and so wait for one another.
package kafkatest
