// Package childproc runs a server as a child process for tests, verification and measurements, and breaks it on purpose. It is
// for Unix systems, and must never be imported by code that a user's service links.
//
// A process is watched by one goroutine that ends with it; Kill and Stop wait for that. A Process may be used from several
// goroutines.
package childproc
