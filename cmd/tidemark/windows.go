package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
	"github.com/tidemark/tidemark/serve/client"
)

func windowsCommand() *cobra.Command {
	r := &rowsFlags{}
	var at string
	cmd := &cobra.Command{
		Use:   "windows STORE [KEY]",
		Short: "Show windows or sessions, of a key or of all",
		Long: `Shows the windows of a key, or of all keys, that start between --from and --to, or that contain the moment --at. Of a
store of sessions those that have a moment between --from and --to.`,
		Example: "  tidemark windows per-minute c42 --from 2026-03-01T12:00:00Z --to 2026-03-01T13:00:00Z --endpoint localhost:8080\n" +
			"  tidemark windows per-minute --at 1772366400000 --limit 0 --output json --endpoint localhost:8080",
		Args:              needs(1, 2, "a store, and possibly a key"),
		ValidArgsFunction: storeNames(&r.asker),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.show(cmd, args[0], func(s *apiv1.Store, req *apiv1.RowsRequest) (client.RowsMethod, error) {
				if req.At = at; len(args) > 1 {
					req.Key = proto.String(args[1])
				}
				switch query.Kind(s.Kind) {
				case query.Window:
					return client.Windows, nil
				case query.Session:
					return client.Sessions, nil
				}
				return 0, fmt.Errorf("store %s is of kind %s and has no windows: use tidemark get or tidemark scan", s.Id, s.Kind)
			})
		},
	}
	r.flags(cmd)
	keyFlags(cmd)
	timeFlags(cmd, "of the start of a window, or of a session")
	cmd.Flags().StringVar(&at, "at", "", "only those that contain this moment, RFC 3339 or ms since 1970")
	cmd.MarkFlagsMutuallyExclusive("at", "from")
	cmd.MarkFlagsMutuallyExclusive("at", "to")
	return cmd
}
