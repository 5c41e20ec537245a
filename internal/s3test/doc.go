// Package s3test runs a real S3 server on loopback for tests, verification and measurements: versitygw, which
// keeps objects as files below a directory. It installs the server with the go command once, starts it, waits
// until it answers, and breaks it on purpose (Kill, Pause, Restart).
//
// It is for Unix systems. It must never be imported by code that a user's service links.
//
// A Server's process is watched by one goroutine that ends with the process; Stop and Kill wait for it. A Server may
// be used from several goroutines; those calls that end or start the process wait for each other.
package s3test
