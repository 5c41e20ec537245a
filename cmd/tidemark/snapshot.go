package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/clock"
)

func snapshotCommand(clk clock.Clock) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Look at the snapshots of an app in a directory or bucket",
		Long: `Looks at the snapshots of an app where they are kept; the app need not run, and nothing is changed. Credentials for a
bucket come from the environment, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE for instance.

What counts for a restore is what the last progress record of a task refers to, in Kafka. A bucket may also hold snapshots
that were never published, and for some time those that are not kept any more.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(snapshotListCommand(clk), snapshotVerifyCommand(), snapshotDumpCommand(clk))
	return cmd
}

// taskName names a task within its app.
func taskName(t snapshot.Task) string { return fmt.Sprintf("%s/%d", t.Sub, t.Partition) }

// commitNames names the snapshots of a task by their commits. Where there are several of one, as an instance may leave that
// has lost the task, the beginning of the manifest's sum tells them apart.
func commitNames(found []snapshot.Found) []string {
	times := make(map[uint64]int)
	for _, f := range found {
		times[f.Seq]++
	}
	out := make([]string, len(found))
	for i, f := range found {
		if out[i] = fmt.Sprint(f.Seq); times[f.Seq] > 1 {
			_, sum, _ := strings.Cut(f.Key[strings.LastIndexByte(f.Key, '/')+1:], "-")
			out[i] += "-" + sum[:8]
		}
	}
	return out
}

// nameOf returns the name of a snapshot.
func nameOf(h *snapshot.Holding, key string) string {
	for i, name := range commitNames(h.Found) {
		if h.Found[i].Key == key {
			return name
		}
	}
	return ""
}

// trouble says in a word what is wrong with an object.
func trouble(err error) string {
	var version *snapshot.VersionError
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return "missing"
	case errors.As(err, &version):
		return "not understood"
	}
	return "damaged"
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1023.95 && unit < len("KMGTP")-1 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[unit])
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
