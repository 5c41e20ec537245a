package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// want is how new an answer must be, and what it shows.
type want struct {
	consistency  string
	maxLag       int64
	minWatermark string
	position     string
	partition    int32
	shape
}

// shape is what an answer shows of rows.
type shape struct {
	fields []string
	raw    bool
}

func (s *shape) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&s.fields, "fields", nil, "parts of values to show, dotted paths: amount,customer.name")
	f.BoolVar(&s.raw, "raw", false, "show encoded bytes, in base64")
}

func (w *want) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.consistency, "consistency", "committed", "committed, or stale: from a task that is being restored as well")
	f.Int64Var(&w.maxLag, "max-lag", 0, "with --consistency stale: the greatest lag, in records (default any)")
	f.StringVar(&w.minWatermark, "min-watermark", "", "event time the tasks must have reached, RFC 3339 or ms since 1970")
	f.StringVar(&w.position, "position", "", "what the answer must reflect: topic/partition@offset, or a position of an answer")
	f.Int32Var(&w.partition, "partition", -1, "ask this partition only (default that of the key, or all)")
	w.shape.flags(cmd)
	complete(cmd, "consistency", cobra.FixedCompletions([]string{"committed", "stale"}, cobra.ShellCompDirectiveNoFileComp))
}

// level reads --consistency.
func (w *want) level() (apiv1.Consistency, error) {
	n, ok := apiv1.Consistency_value[strings.ToUpper(w.consistency)]
	if !ok {
		return 0, fmt.Errorf("--consistency %s is none: say committed or stale", w.consistency)
	}
	if w.maxLag != 0 && apiv1.Consistency(n) != apiv1.Consistency_STALE {
		return 0, fmt.Errorf("--max-lag has no meaning for committed state: add --consistency stale")
	}
	return apiv1.Consistency(n), nil
}

// only is --partition, nil for none.
func only(p int32) *int32 {
	if p < 0 {
		return nil
	}
	return proto.Int32(p)
}

// given returns a flag of text, nil if it was not given: an empty key is a key.
func given(cmd *cobra.Command, flag string) *string {
	f := cmd.Flags().Lookup(flag)
	if f == nil || !f.Changed {
		return nil
	}
	return proto.String(f.Value.String())
}
