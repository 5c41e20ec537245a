// Command first is a service as it was deployed first.
package main

import (
	"os"

	"github.com/tidemark/tidemark/internal/verify/upgrade/program"
	"github.com/tidemark/tidemark/topology"
)

func main() {
	top := topology.New("clicks")
	in := top.Stream[string, string]("in")
	in.Count("n").To("out")
	in.Reduce("last", func(a, b string) string { return b })
	os.Exit(program.Main(top))
}
