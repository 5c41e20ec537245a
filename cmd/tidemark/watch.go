package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/client"
)

func watchCommand() *cobra.Command {
	a, s := &asker{}, &shape{}
	var filter, token string
	var partition int32
	var limit int
	cmd := &cobra.Command{
		Use:   "watch STORE [KEY]",
		Short: "Show what changes in a store, as it is committed",
		Long: `Shows the rows there are, and then what every commit changes, of a key, a range of keys or the whole store, until it
is interrupted. When tasks move it goes on at their new instances, and leaves nothing out.

In a table CHANGE is "row" for the rows there are, "set" and "delete" for changes; a line "reset" says that the rows of a
partition are told anew. As JSON every line is one event of the API; --token takes the token of the last one that was seen.`,
		Example: "  tidemark watch totals --endpoint localhost:8080\n" +
			"  tidemark watch totals c42 --output json --fields amount --endpoint localhost:8080",
		Args:              needs(1, 2, "a store, and possibly a key"),
		ValidArgsFunction: storeNames(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return fmt.Errorf("--limit %d is none: say how many rows, or 0 for no end", limit)
			}
			return a.run(cmd.Context(), args[0], func(ctx context.Context, c *client.Client, st *apiv1.Store) error {
				req := &apiv1.WatchRequest{
					Store: args[0], Partition: only(partition), Filter: filter, Token: token, Raw: s.raw, Fields: s.fields,
					Prefix: given(cmd, "prefix"), FromKey: given(cmd, "from-key"), ToKey: given(cmd, "to-key"),
				}
				if len(args) > 1 {
					req.Key = proto.String(args[1])
				}
				p := a.events(cmd.OutOrStdout(), st)
				shown := 0
				for e, err := range c.Watch(ctx, req) {
					if errors.Is(err, context.Canceled) {
						return nil // interrupted, as watches are
					}
					if err != nil {
						return err
					}
					if err := p.event(e); err != nil {
						return err
					}
					if shown += len(e.Rows); limit > 0 && shown >= limit {
						return nil
					}
				}
				return nil
			})
		},
	}
	a.flags(cmd)
	s.flags(cmd)
	keyFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&filter, "filter", "", `show only rows for which an expression over key, value, start, end and time is true: value.amount > 10`)
	f.StringVar(&token, "token", "", "go on behind the event with this token")
	f.Int32Var(&partition, "partition", -1, "watch this partition only (default that of the key, or all)")
	f.IntVar(&limit, "limit", 0, "end once so many rows were shown, 0: never")
	return cmd
}
