// Package queries holds the end-to-end tests of queries: instances of an app with servers in front of them, asked over gRPC,
// REST and the client while records come in, instances come and go, and tasks move. What clients have seen is checked
// afterwards: nothing uncommitted, nothing that goes back in time, and with a common position one history that a single
// store could have given.
package queries
