package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/clock"
)

func snapshotListCommand(clk clock.Clock) *cobra.Command {
	b := &bucket{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the snapshots of an app",
		Long: `Lists the snapshots there are, by task and commit, and what they take. Snapshots of a task share the files that have not
changed between them. Orphaned are files that no manifest names: those of an upload that runs or was broken off, or that are
not deleted yet. The app deletes them when they are an hour old and its next snapshot is published.

As JSON every line is a task.`,
		Example: "  tidemark snapshot list --dir /mnt/snapshots --app orders\n" +
			"  tidemark snapshot list --s3 orders-state/prod --app orders --output json\n" +
			"  tidemark snapshot list --s3 orders-state --endpoint http://localhost:9000 --path-style --app orders",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, all, err := b.survey(cmd.Context())
			if err != nil {
				return err
			}
			if b.output == asJSON {
				return printHoldings(newLines(cmd.OutOrStdout()), all, clk.Now())
			}
			return showHoldings(cmd.OutOrStdout(), all, clk.Now())
		},
	}
	b.flags(cmd)
	b.outputFlag(cmd)
	return cmd
}

func showHoldings(w io.Writer, all []*snapshot.Holding, now time.Time) error {
	t := newTable(w, "TASK", "COMMIT", "MADE", "AGE", "SIZE", "FILES", "SHARES")
	for _, h := range all {
		names := commitNames(h.Found)
		for i, f := range h.Found {
			if f.Err != nil {
				t.line(taskName(h.Task), names[i], "-", "-", "-", "-", "the manifest is "+trouble(f.Err)+", see tidemark snapshot verify")
				continue
			}
			t.line(taskName(h.Task), names[i], moment(&f.Created), age(now, f.Created).String(), size(f.Bytes), strconv.Itoa(len(f.Manifest.Files)), shareText(h, i))
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	t = newTable(w, "TASK", "SNAPSHOTS", "OBJECTS", "TOTAL", "ORPHANS", "ORPHANED")
	sum, snapshots := snapshot.Holding{}, 0
	for _, h := range all {
		t.line(taskName(h.Task), strconv.Itoa(len(h.Found)), strconv.Itoa(h.Objects), size(h.Bytes), strconv.Itoa(h.Orphans), size(h.OrphanBytes))
		snapshots += len(h.Found)
		sum.Objects, sum.Bytes = sum.Objects+h.Objects, sum.Bytes+h.Bytes
		sum.Orphans, sum.OrphanBytes = sum.Orphans+h.Orphans, sum.OrphanBytes+h.OrphanBytes
	}
	t.line("all", strconv.Itoa(snapshots), strconv.Itoa(sum.Objects), size(sum.Bytes), strconv.Itoa(sum.Orphans), size(sum.OrphanBytes))
	return t.flush()
}

// shownShares is how many of the snapshots that share files with one are named in a table.
const shownShares = 3

// shareText names the snapshots with which one shares most files.
func shareText(h *snapshot.Holding, at int) string {
	shares := h.Shares(at)
	slices.SortStableFunc(shares, func(a, b snapshot.Share) int { return cmp.Compare(b.Files, a.Files) })
	var parts []string
	for _, s := range shares[:min(len(shares), shownShares)] {
		parts = append(parts, fmt.Sprintf("%d with %s", s.Files, nameOf(h, s.With.Key)))
	}
	text := strings.Join(parts, ", ")
	if more := len(shares) - shownShares; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// age is how long something was made ago, as exact as people want it.
func age(now time.Time, ms int64) time.Duration {
	d := now.Sub(time.UnixMilli(ms))
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// holdingLine is a task as JSON. Sizes are in bytes, times in ms.
type holdingLine struct {
	Task        string         `json:"task"`
	Snapshots   []snapshotLine `json:"snapshots"`
	Objects     int            `json:"objects"`
	Bytes       int64          `json:"bytes"`
	Orphans     int            `json:"orphans"`
	OrphanBytes int64          `json:"orphan_bytes"`
}

type snapshotLine struct {
	Name     string      `json:"name"` // as --commit takes it
	Seq      uint64      `json:"seq"`
	Manifest string      `json:"manifest"` // its key
	Problem  string      `json:"problem,omitempty"`
	Error    string      `json:"error,omitempty"`
	Made     int64       `json:"made,omitzero"`
	Age      int64       `json:"age,omitzero"`
	Time     int64       `json:"time,omitzero"`      // of the commit
	Mark     *int64      `json:"watermark,omitzero"` // of the commit
	Bytes    int64       `json:"bytes,omitzero"`
	Files    int         `json:"files,omitzero"`
	Shares   []shareLine `json:"shares,omitempty"`
}

type shareLine struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

func printHoldings(l *lines, all []*snapshot.Holding, now time.Time) error {
	for _, h := range all {
		line := holdingLine{taskName(h.Task), []snapshotLine{}, h.Objects, h.Bytes, h.Orphans, h.OrphanBytes}
		names := commitNames(h.Found)
		for i, f := range h.Found {
			s := snapshotLine{Name: names[i], Seq: f.Seq, Manifest: f.Key}
			if m := f.Manifest; m != nil {
				s.Made, s.Age, s.Time, s.Mark = f.Created, now.UnixMilli()-f.Created, m.Time, &m.W
				s.Bytes, s.Files = f.Bytes, len(m.Files)
			} else {
				s.Problem, s.Error = trouble(f.Err), f.Err.Error()
			}
			for _, share := range h.Shares(i) {
				s.Shares = append(s.Shares, shareLine{nameOf(h, share.With.Key), share.Files, share.Bytes})
			}
			line.Snapshots = append(line.Snapshots, s)
		}
		if err := l.print(line); err != nil {
			return err
		}
	}
	return nil
}
