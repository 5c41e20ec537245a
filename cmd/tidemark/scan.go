package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/client"
)

// rowsFlags are the flags of commands that show rows.
type rowsFlags struct {
	asker
	want
	filter  string
	limit   int
	partial bool
}

const (
	defaultLimit = 100
	// pageRows bounds how many rows are asked for at a time; a table is aligned page by page.
	pageRows = 1000
)

func (r *rowsFlags) flags(cmd *cobra.Command) {
	r.asker.flags(cmd)
	r.want.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.filter, "filter", "", `show only rows for which an expression over key, value, start, end and time is true: value.amount > 10`)
	f.IntVar(&r.limit, "limit", defaultLimit, "show at most so many rows, 0: all")
	f.BoolVar(&r.partial, "allow-partial", false, "show what there is if partitions have no answer")
}

// keyFlags bound keys.
func keyFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("prefix", "", "only keys that begin with this, where keys are strings or bytes")
	f.String("from-key", "", "only keys at or behind this one, in the order of encoded keys")
	f.String("to-key", "", "only keys before this one")
	for _, k := range []string{"from-key", "to-key"} {
		cmd.MarkFlagsMutuallyExclusive("prefix", k)
	}
}

// timeFlags bound times.
func timeFlags(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.String("from", "", "earliest moment, included, "+what+": RFC 3339 or ms since 1970")
	f.String("to", "", "latest moment, included")
}

func scanCommand() *cobra.Command {
	r := &rowsFlags{}
	var key, asOf string
	cmd := &cobra.Command{
		Use:   "scan STORE",
		Short: "Show the rows of a store",
		Long: `Shows the rows of a store of any kind, by partition, and in each by encoded key. With --key those of one key: its
windows, sessions, versions or values, which --from and --to bound.`,
		Example: "  tidemark scan totals --endpoint localhost:8080 --prefix eu- --filter 'value.amount > 10'\n" +
			"  tidemark scan prices --key ACME --from 2026-03-01T00:00:00Z --endpoint localhost:8080",
		Args:              needs(1, 1, "a store"),
		ValidArgsFunction: storeNames(&r.asker),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.show(cmd, args[0], func(s *apiv1.Store, req *apiv1.RowsRequest) (client.RowsMethod, error) {
				req.At = asOf
				if req.Key = given(cmd, "key"); req.Key == nil {
					if req.From != "" || req.To != "" {
						return 0, errors.New("--from and --to bound the rows of one key: add --key, or use tidemark windows")
					}
					if asOf != "" && s.Kind != string(query.Versioned) {
						return 0, fmt.Errorf("store %s is of kind %s and keeps no history: leave out --as-of", s.Id, s.Kind)
					}
					return client.Scan, nil
				}
				m, ok := ofKey[query.Kind(s.Kind)]
				if !ok {
					return 0, fmt.Errorf("store %s is of kind %s and has one row per key: use tidemark get %s %s", s.Id, s.Kind, s.Id, *req.Key)
				}
				if asOf != "" {
					return 0, errors.New("--as-of is one moment of all keys: with --key use --from and --to, or tidemark get --as-of")
				}
				return m, nil
			})
		},
	}
	r.flags(cmd)
	keyFlags(cmd)
	timeFlags(cmd, "of what --key has")
	cmd.Flags().StringVar(&key, "key", "", "only rows of this key")
	cmd.Flags().StringVar(&asOf, "as-of", "", "for versioned stores: the values at that time, RFC 3339 or ms since 1970 (default the latest)")
	for _, f := range []string{"prefix", "from-key", "to-key"} {
		cmd.MarkFlagsMutuallyExclusive("key", f)
	}
	return cmd
}

// ofKey is the question for the rows of one key.
var ofKey = map[query.Kind]client.RowsMethod{
	query.Window: client.Windows, query.Session: client.Sessions, query.Versioned: client.History, query.List: client.Values,
}

// show asks for rows and prints them. fill completes the question.
func (r *rowsFlags) show(cmd *cobra.Command, store string, fill func(*apiv1.Store, *apiv1.RowsRequest) (client.RowsMethod, error)) error {
	level, err := r.level()
	if err != nil {
		return err
	}
	if r.limit < 0 {
		return fmt.Errorf("--limit %d is none: say how many rows, or 0 for all", r.limit)
	}
	return r.run(cmd.Context(), store, func(ctx context.Context, c *client.Client, s *apiv1.Store) error {
		text := func(flag string) string {
			if p := given(cmd, flag); p != nil {
				return *p
			}
			return ""
		}
		req := &apiv1.RowsRequest{
			Store: store, Partition: only(r.partition), Filter: r.filter, AllowPartial: r.partial,
			Consistency: level, MaxLag: r.maxLag, MinWatermark: r.minWatermark, Position: r.position, Raw: r.raw, Fields: r.fields,
			Prefix: given(cmd, "prefix"), FromKey: given(cmd, "from-key"), ToKey: given(cmd, "to-key"),
			From: text("from"), To: text("to"),
		}
		m, err := fill(s, req)
		if err != nil {
			return err
		}
		return r.pages(ctx, cmd, c, s, m, req)
	})
}

// pages prints page after page up to the limit.
func (r *rowsFlags) pages(ctx context.Context, cmd *cobra.Command, c *client.Client, s *apiv1.Store, m client.RowsMethod, req *apiv1.RowsRequest) error {
	p := r.printer(cmd.OutOrStdout(), s, plain)
	left := r.limit
	var gone []int32
	for {
		req.Limit = pageRows
		if r.limit > 0 {
			req.Limit = int32(min(left, pageRows))
		}
		page, err := c.Page(ctx, m, req)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			if err := p.row(row, nil); err != nil {
				return err
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
		gone = append(gone, page.Missing...)
		left -= len(page.Rows)
		req.PageToken = page.NextPageToken
		if req.PageToken == "" {
			return missing(gone)
		}
		if r.limit > 0 && left <= 0 {
			cmd.PrintErrf("there may be more rows than %d: ask for them with --limit, 0 is all\n", r.limit)
			return missing(gone)
		}
	}
}
