// Package query says what can be asked of the stores of an app and what an answer is: descriptions of stores, the wishes
// of a reader about how new an answer must be, positions, errors, and the reads of one task's state as of one commit.
//
// It never talks to the network, starts no goroutine, and reads no clock. Who has a View may use it on any goroutine, one
// at a time; everything else here is values that do not change.
package query
