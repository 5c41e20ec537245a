// Package mutant is a list of small edits of the code, each of which breaks one rule of the commit protocol,
// and the means to build with one of them. A checker that does not notice an edit proves nothing about the rule.
//
// An edit replaces text in a file; where the text is no longer there, the mutant is stale and reported, never
// skipped. The files themselves are not touched: the go command gets an overlay. The package knows nothing of
// how a mutant is caught.
package mutant
