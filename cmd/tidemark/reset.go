package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/reset"
)

func resetCommand() *cobra.Command {
	var brokers []string
	var opts reset.Options
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Take an app back to where it has never run",
		Long: `Forgets the committed offsets of an app, deletes its internal topics and, with --state, this machine's local
state. Without --yes it only shows what it would do. All instances must be stopped. On the next start the app
reads its inputs from where StartAt says; what it has written to output topics stays there.`,
		Example: "  tidemark reset --app orders --brokers localhost:9092 --state /var/lib/orders\n" +
			"  tidemark reset --app orders --brokers localhost:9092 --state /var/lib/orders --yes",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
			if err != nil {
				return err
			}
			defer cl.Close()
			plan, err := reset.Look(cmd.Context(), cl, opts)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			plan.Print(out)
			if plan.Empty() {
				return fmt.Errorf("app %s: %w; is the id right?", opts.App, reset.ErrNothing)
			}
			if !yes {
				fmt.Fprintln(out, "dry run: nothing was changed; add --yes to do it")
				return nil
			}
			if err := plan.Do(cmd.Context(), cl); err != nil {
				if errors.Is(err, reset.ErrRunning) {
					return fmt.Errorf("%w; stop all instances, or wait until the session of a dead one is over", err)
				}
				return err
			}
			fmt.Fprintln(out, "done")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.App, "app", "", "application id (required)")
	f.StringSliceVar(&brokers, "brokers", []string{"localhost:9092"}, "broker addresses")
	f.StringVar(&opts.StateDir, "state", "", "state directory of this machine's instance")
	f.BoolVar(&opts.DeadLetter, "dead-letter", false, "delete the dead-letter and late topics too")
	f.BoolVar(&yes, "yes", false, "do it")
	cobra.CheckErr(cmd.MarkFlagRequired("app"))
	return cmd
}
