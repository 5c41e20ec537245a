// Package nexmark is the Nexmark benchmark on Tidemark: the events of an auction house from a seeded generator, queries
// written as a user of the library would write them, and for every query an evaluator that computes the same output with
// plain loops. The evaluator must not use any of the library's code for windows, aggregates or encodings, since it is
// what these are compared with. The package has no goroutines of its own; its clients' belong to the calls that make
// them.
//
// # Queries
//
// The definitions are those of the suite's SQL version. All read bids from one topic of mixed events.
//
//	q0   passes bids on
//	q1   converts their price to another currency: 0.908 of it
//	q2   keeps the bids for every 123rd auction
//	q5   auctions with the most bids of the last 10 s, every 2 s
//	q7   bids with the highest price of every 10 s
//	q11  bids per bidder and session; a session ends with 10 s of silence
//	q12  bids per bidder and 10 s of processing time
//	q14  converts the price, keeps those above 1 M and below 50 M, names the time of day, counts a letter
//	q22  takes a URL apart
//
// # Choices
//
// Where the SQL leaves something open, or cannot be meant, these are the rules here:
//
//   - Results are final: a window gives one result, when the watermark has passed its end. The generator delays events by
//     less than the watermark waits, so no event is late, and the input ends with an event in every partition that moves
//     the watermark past all windows. The output is then a function of the input.
//   - q5 adds the bounds of the window to auction and number, for its rows mean little without.
//   - q7 keeps the highest price together with the bids that have it, in one aggregate, where the SQL joins bids with the
//     maximum. Windows are half-open: the SQL's BETWEEN would also find a bid at the very end of a window that has the
//     highest price by chance, although that bid belongs to the next one.
//   - q11 has sessions as half-open windows, so that bids exactly 10 s apart are in two. Flink joins them.
//   - q12 takes a bid's time from the clock when the bid is processed behind the repartition.
//   - Exact decimals have three places. Times are ms since 1970, hours those of UTC.
//
// # Comparison
//
// A Row is a record of an output topic: key, timestamp and value, byte for byte. Which partition and offset it has
// depends on how tasks interleave; rows are compared in the order of key, timestamp and value.
package nexmark
