// Command grown is the service after changes that are free: a filter, and an operator more.
package main

import (
	"os"

	"github.com/tidemark/tidemark/internal/verify/upgrade/program"
	"github.com/tidemark/tidemark/topology"
)

func main() {
	top := topology.New("clicks")
	in := top.Stream[string, string]("in").Filter(func(string) bool { return true })
	in.Count("n").To("out")
	in.Reduce("last", func(a, b string) string { return b })
	in.KeyBy("by", func(v string) string { return v }).Count("new")
	os.Exit(program.Main(top))
}
