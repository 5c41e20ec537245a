// Package rebalance decides which member of the consumer group runs which task, and
// carries the decision: a plan as a pure function of what the members say of
// themselves, the user data both ways, and the group balancer kgo calls.
//
// It must never give a partition away that a member still owns: the plan withholds
// it until the owner has revoked it. It knows no state, no offsets and no lags.
//
// Plan and the codecs are pure. Balancer runs on the group client's goroutine, one
// call at a time, except Heard and the other getters, which any goroutine may call.
package rebalance
