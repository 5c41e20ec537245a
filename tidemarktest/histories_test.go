package tidemarktest_test

import (
	"flag"
	"testing"

	"github.com/tidemark/tidemark/tidemarktest"
)

var rewrite = flag.Bool("rewrite", false, "write the expected text of histories anew; read it before you commit it")

func TestHistories(t *testing.T) {
	tidemarktest.RunHistories(t, "testdata/histories/*/*.txt", *rewrite, find)
}
