package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/topology"
)

// errIncompatible makes the program end with incompatibleStatus, after the reasons were printed.
var errIncompatible = errors.New("incompatible")

// incompatibleStatus is the exit status of a check that found differences; 1 is a check that failed.
const incompatibleStatus = 3

func checkCommand() *cobra.Command {
	var cfg tidemark.Config
	var file string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether a topology can take over the state of an app",
		Long: `Compares a topology with the one whose state an app has, running or stopped, and prints every difference that keeps
it from taking over, with what to do. It changes nothing. The topology is a file that a program has written with
Plan.Shape and WriteJSON. The exit status is 0 if the topology can take over, 3 if it cannot, and 1 if that could not be
found out.`,
		Example: "  campaign -shape > new.json\n" +
			"  tidemark check --app campaign-metrics --brokers localhost:9092 --shape new.json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			s, err := topology.ReadShape(f)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			list, err := tidemark.CheckShape(cmd.Context(), s, cfg)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if len(list) == 0 {
				_, err := fmt.Fprintln(out, "nothing keeps the topology from taking over")
				return err
			}
			if err := topology.WriteDifferences(out, list); err != nil {
				return err
			}
			return errIncompatible
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.App, "app", "", "application id (required)")
	f.StringSliceVar(&cfg.Brokers, "brokers", []string{"localhost:9092"}, "broker addresses")
	f.StringVar(&file, "shape", "", "file with the shape of the topology (required)")
	f.StringSliceVar(&cfg.AllowNonRestored, "allow-non-restored", nil, "ids of operators whose state may be left behind")
	cobra.CheckErr(errors.Join(cmd.MarkFlagRequired("app"), cmd.MarkFlagRequired("shape")))
	return cmd
}
