package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/client"
)

// completionTimeout is how long a shell waits for names of stores.
const completionTimeout = 2 * time.Second

func getCommand() *cobra.Command {
	a, w := &asker{}, &want{}
	var asOf string
	var partial bool
	cmd := &cobra.Command{
		Use:   "get STORE KEY...",
		Short: "Show the rows of keys",
		Long: `Shows the row of each key of a store of kind key-value, expiring or versioned, and what it was read from. A key is a
string as it is, bytes in base64, and everything else as JSON. Of one key that the store does not have, and if partitions
have no answer, the exit status is 1.`,
		Example: "  tidemark get totals c42 --endpoint localhost:8080\n" +
			"  tidemark get totals c42 c43 c44 --endpoint localhost:8080 --fields amount --output json\n" +
			"  tidemark get prices ACME --as-of 2026-03-01T12:00:00Z --endpoint localhost:8080\n" +
			"  tidemark get totals c42 --position orders/3@1041 --endpoint localhost:8080",
		Args:              needs(2, -1, "a store and at least one key"),
		ValidArgsFunction: storeNames(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			level, err := w.level()
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), args[0], func(ctx context.Context, c *client.Client, s *apiv1.Store) error {
				req := &apiv1.MultiGetRequest{
					Store: args[0], Keys: args[1:], Partition: only(w.partition), AsOf: asOf, AllowPartial: partial,
					Consistency: level, MaxLag: w.maxLag, MinWatermark: w.minWatermark, Position: w.position, Raw: w.raw, Fields: w.fields,
				}
				out, err := getAll(ctx, c, req)
				if err != nil {
					return err
				}
				p := a.printer(cmd.OutOrStdout(), s, withMeta)
				for i, f := range out.Found {
					if err := p.found(args[1+i], f, metaOf(out.Metas, f.GetPartition())); err != nil {
						return err
					}
				}
				return errors.Join(p.flush(), missing(out.Missing))
			})
		},
	}
	a.flags(cmd)
	w.flags(cmd)
	cmd.Flags().StringVar(&asOf, "as-of", "", "for versioned stores: the values at that time, RFC 3339 or ms since 1970 (default the latest)")
	cmd.Flags().BoolVar(&partial, "allow-partial", false, "show what there is if partitions have no answer")
	return cmd
}

// getAll asks for rows. One key that is not there is an error.
func getAll(ctx context.Context, c *client.Client, req *apiv1.MultiGetRequest) (*apiv1.MultiGetResponse, error) {
	if len(req.Keys) > 1 {
		return c.MultiGet(ctx, req)
	}
	out, err := c.Get(ctx, &apiv1.GetRequest{
		Store: req.Store, Key: proto.String(req.Keys[0]), Partition: req.Partition, AsOf: req.AsOf,
		Consistency: req.Consistency, MaxLag: req.MaxLag, MinWatermark: req.MinWatermark, Position: req.Position, Raw: req.Raw, Fields: req.Fields,
	})
	if err != nil {
		return nil, err
	}
	return &apiv1.MultiGetResponse{
		Found: []*apiv1.Found{{Row: out.Row, Partition: proto.Int32(out.GetRow().GetPartition())}},
		Metas: []*apiv1.Meta{out.Meta},
	}, nil
}

func metaOf(list []*apiv1.Meta, p int32) *apiv1.Meta {
	for _, m := range list {
		if m.GetPartition() == p {
			return m
		}
	}
	return nil
}

// missing is the error behind what there is.
func missing(partitions []int32) error {
	if len(partitions) == 0 {
		return nil
	}
	return &query.Error{Reason: query.Partial, Message: "partitions have no answer", Missing: partitions}
}

// needs checks the number of arguments; most < 0 is no bound.
func needs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return fmt.Errorf("%s needs %s: %s", cmd.CommandPath(), what, cmd.UseLine())
		}
		return nil
	}
}
