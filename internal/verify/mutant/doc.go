// Package mutant is a list of small edits of the code, each of which breaks one rule, and the means to build with one
// of them. A checker or a test that does not notice an edit proves nothing about the rule.
//
// There are two families: mutants of the commit protocol, which simulations catch, and mutants of event time, which
// ordinary tests catch by name.
//
// An edit replaces text in a file; where the text is no longer there, the mutant is stale and reported, never
// skipped. The files themselves are not touched: the go command gets an overlay. The package runs nothing.
package mutant
