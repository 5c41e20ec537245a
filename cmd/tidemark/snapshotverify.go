package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/changelog/snapshot"
)

// errFlawed makes the program end with status 1, after what is wrong was printed.
var errFlawed = errors.New("snapshots are flawed")

func snapshotVerifyCommand() *cobra.Command {
	b := &bucket{}
	parallel := 0
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read all snapshots of an app and compare them with their sums",
		Long: `Reads every object that the manifests name, each once, and compares its size and SHA-256 with what they say. Every
manifest that cannot be read and every file that is damaged or missing is a line, and the last line counts. The exit status
is 0 if all is whole and 1 if anything is not, or could not be found out. Snapshots that a running app deletes meanwhile are
left out.

A flawed snapshot loses nothing: a restore takes an older one or the changelogs. The app puts missing files again with its
next snapshots.`,
		Example: "  tidemark snapshot verify --dir /mnt/snapshots --app orders\n" +
			"  tidemark snapshot verify --s3 orders-state/prod --region eu-central-1 --app orders",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if parallel < 0 {
				return fmt.Errorf("--parallel %d is none: say how many objects are read at a time", parallel)
			}
			store, all, err := b.survey(cmd.Context())
			if err != nil {
				return err
			}
			var p flawPrinter = &flawTable{newTable(cmd.OutOrStdout(), "TASK", "COMMIT", "FILE", "PROBLEM"), 0}
			if b.output == asJSON {
				p = flawLines{newLines(cmd.OutOrStdout())}
			}
			sum := verified{Tasks: len(all)}
			for _, h := range all {
				in, err := snapshot.Inspect(cmd.Context(), store, h, snapshot.Options{Parallel: parallel})
				if err != nil {
					return bucketAdvised(err)
				}
				for _, f := range in.Flaws {
					if err := p.flaw(h, f); err != nil {
						return err
					}
				}
				sum.add(in)
			}
			if err := p.end(sum); err != nil {
				return err
			}
			if sum.Flawed > 0 {
				return errFlawed
			}
			return nil
		},
	}
	b.flags(cmd)
	b.outputFlag(cmd)
	cmd.Flags().IntVar(&parallel, "parallel", 0, "how many objects are read at a time (default 4)")
	return cmd
}

// verified is what a verification has counted, and its last line as JSON.
type verified struct {
	Tasks   int   `json:"tasks"`
	Whole   int   `json:"whole"`
	Flawed  int   `json:"flawed"`
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Bad     int   `json:"bad_objects"`
	Gone    int   `json:"gone,omitzero"`
}

func (v *verified) add(in *snapshot.Inspection) {
	v.Whole, v.Flawed, v.Gone = v.Whole+in.Whole, v.Flawed+in.Flawed, v.Gone+in.Gone
	v.Objects, v.Bytes, v.Bad = v.Objects+in.Objects, v.Bytes+in.Bytes, v.Bad+in.BadObjects
}

func (v *verified) String() string {
	s := fmt.Sprintf("%s of %s: %d whole, %d flawed; ", count(v.Whole+v.Flawed, "snapshot"), count(v.Tasks, "task"), v.Whole, v.Flawed)
	s += fmt.Sprintf("%s looked at, %s read, %d bad", count(v.Objects, "object"), size(v.Bytes), v.Bad)
	if v.Gone > 0 {
		s += fmt.Sprintf("; %s deleted meanwhile", count(v.Gone, "snapshot"))
	}
	return s
}

// flawPrinter prints what is wrong, and then what was counted.
type flawPrinter interface {
	flaw(h *snapshot.Holding, f snapshot.Flaw) error
	end(v verified) error
}

type flawTable struct {
	*table
	flaws int
}

func (t *flawTable) flaw(h *snapshot.Holding, f snapshot.Flaw) error {
	t.flaws++
	file := f.File
	if file == "" {
		file = "(manifest)"
	}
	t.line(taskName(h.Task), nameOf(h, f.Ref.Key), file, flawText(f))
	return t.flush()
}

// flawText says what is wrong with an object whose key is told elsewhere.
func flawText(f snapshot.Flaw) string {
	if trouble(f.Err) == "missing" {
		return "missing"
	}
	text := f.Err.Error()
	var version *snapshot.VersionError
	if errors.As(f.Err, &version) {
		return fmt.Sprintf("not understood: version %d, this tidemark reads %d to %d: use a newer one", version.Have, version.Min, version.Max)
	}
	for err := f.Err; err != nil; err = errors.Unwrap(err) {
		if u := errors.Unwrap(err); u != nil && errors.Is(u, snapshot.ErrDamaged) && u != snapshot.ErrDamaged {
			text = u.Error()
		}
	}
	return text
}

func (t *flawTable) end(v verified) error {
	if t.flaws == 0 {
		t.held = nil // no flaws, no head
	}
	if err := t.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(t.w, v.String())
	return err
}

type flawLines struct{ *lines }

// flawLine is a flaw as JSON.
type flawLine struct {
	Task     string `json:"task"`
	Snapshot string `json:"snapshot"` // as --commit takes it
	Manifest string `json:"manifest"` // its key
	File     string `json:"file,omitempty"`
	Problem  string `json:"problem"`
	Error    string `json:"error"`
}

func (l flawLines) flaw(h *snapshot.Holding, f snapshot.Flaw) error {
	return l.print(flawLine{taskName(h.Task), nameOf(h, f.Ref.Key), f.Ref.Key, f.File, trouble(f.Err), f.Err.Error()})
}

func (l flawLines) end(v verified) error { return l.print(v) }
