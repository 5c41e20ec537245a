// Package upgrade shows which changes of a topology can take over its state and which cannot: on topologies as users
// declare them, and on running instances. It holds tests only, apart from what they share.
package upgrade
