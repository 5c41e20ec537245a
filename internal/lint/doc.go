// Package lint holds the house rules that a machine can check, as tests over the repository's
// source: who may import whom, who may ask for the time or start goroutines, documented names, file
// lengths. It has no code of its own outside its tests and must not be imported.
package lint
