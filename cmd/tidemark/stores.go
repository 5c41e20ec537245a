package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/client"
)

func storesCommand() *cobra.Command {
	a := &asker{}
	cmd := &cobra.Command{
		Use:     "stores",
		Short:   "List the stores of an app that can be asked",
		Example: "  tidemark stores --endpoint localhost:8080",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.run(cmd.Context(), "", func(ctx context.Context, c *client.Client, _ *apiv1.Store) error {
				list, err := c.Stores(ctx)
				if err != nil {
					return err
				}
				if a.output == asJSON {
					return printStores(newLines(cmd.OutOrStdout()), list)
				}
				t := newTable(cmd.OutOrStdout(), "STORE", "KIND", "PARTITIONS", "TOPICS", "WINDOWS", "KEYS", "VALUES")
				for _, s := range list {
					t.line(s.Id, s.Kind, strconv.Itoa(int(s.GetPartitions())), strings.Join(s.Topics, ","), s.Windows, s.KeySchema, clip(s.ValueSchema, 60))
				}
				return t.flush()
			})
		},
	}
	a.flags(cmd)
	return cmd
}

func printStores(l *lines, list []*apiv1.Store) error {
	for _, s := range list {
		if err := l.print(storeLine{s.Id, s.Kind, s.Sub, s.GetPartitions(), s.Topics, s.Windows, s.Slices, s.KeySchema, s.ValueSchema}); err != nil {
			return err
		}
	}
	return nil
}

// storeLine is a store as JSON.
type storeLine struct {
	ID          string   `json:"id"`
	Kind        string   `json:"kind"`
	Sub         string   `json:"sub"`
	Partitions  int32    `json:"partitions"`
	Topics      []string `json:"topics,omitempty"`
	Windows     string   `json:"windows,omitempty"`
	Slices      bool     `json:"slices,omitzero"`
	KeySchema   string   `json:"key_schema"`
	ValueSchema string   `json:"value_schema"`
}

// clip shortens text for a table.
func clip(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n-1]) + "…"
}

// storeNames completes the first argument: with the stores of the app, if an endpoint is given.
func storeNames(a *asker) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 {
			return nil, none
		}
		a.timeout = min(a.timeout, completionTimeout)
		var out []cobra.Completion
		err := a.run(cmd.Context(), "", func(ctx context.Context, c *client.Client, _ *apiv1.Store) error {
			list, err := c.Stores(ctx)
			for _, s := range list {
				out = append(out, cobra.CompletionWithDesc(s.Id, s.Kind+" store, keys are "+s.KeySchema))
			}
			return err
		})
		if err != nil {
			return cobra.AppendActiveHelp(nil, err.Error()), none
		}
		return out, none
	}
}
