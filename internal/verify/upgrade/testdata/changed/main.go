// Command changed is the service after changes that would lose state or take it for something else: n adds up other values,
// and last has gone.
package main

import (
	"os"

	"github.com/tidemark/tidemark/internal/verify/upgrade/program"
	"github.com/tidemark/tidemark/topology"
)

func main() {
	top := topology.New("clicks")
	in := top.Stream[string, string]("in")
	in.Sum("n", func(string) float64 { return 1 }).To("sums")
	in.KeyBy("by", func(v string) string { return v }).Count("new")
	os.Exit(program.Main(top))
}
