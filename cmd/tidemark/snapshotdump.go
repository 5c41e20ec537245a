package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/clock"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
)

func snapshotDumpCommand(clk clock.Clock) *cobra.Command {
	b, d := &bucket{}, &dump{}
	var task, commit string
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print the rows of a snapshot",
		Long: `Fetches one snapshot of one task into a temporary directory, which TMPDIR chooses, and prints the rows of a store, or of
all, as JSON: one row per line, by store and in the order of the encoded keys. The app need not run. What was committed after
the snapshot is in the changelogs only and is not shown; tidemark scan asks a running app for everything.

Keys and values are readable, as "key" and "value", where their schemas say how: strings, numbers, bools and JSON. Else their
bytes are in "raw_key" and "raw_value", in base64. "end", "start", "until", "index" and "tag" are what else is in the key or
beside the value; times are in ms. A windowed aggregate that keeps slices has those, named by their ends.`,
		Example: "  tidemark snapshot dump --dir /mnt/snapshots --app orders --task by-customer/0 --store totals --prefix eu-\n" +
			"  tidemark snapshot dump --s3 orders-state/prod --app orders --task by-customer/0 --commit 1041 --limit 10",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.prefix = given(cmd, "prefix")
			if err := d.check(); err != nil {
				return err
			}
			bucket, all, err := b.survey(cmd.Context())
			if err != nil {
				return err
			}
			h, err := chooseTask(all, task)
			if err != nil {
				return err
			}
			m, err := chooseCommit(h, commit)
			if err != nil {
				return err
			}
			return withSnapshot(cmd.Context(), bucket, m, func(db store.DB) error {
				list, err := d.stores(db)
				if err != nil {
					return err
				}
				cmd.PrintErrln(d.head(m, list, clk))
				return d.print(cmd, db, list)
			})
		},
	}
	b.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&task, "task", "", "the task, as list names it: sub-topology/partition (default the only one)")
	f.StringVar(&commit, "commit", "", "the snapshot, as list names it (default the newest)")
	f.StringVar(&d.store, "store", "", "only rows of this store (default all stores)")
	f.String("prefix", "", "with --store: only keys that begin with this, where keys are strings")
	f.IntVar(&d.limit, "limit", 0, "at most so many rows of each store, 0: all")
	return cmd
}

// chooseTask returns the task of a name.
func chooseTask(all []*snapshot.Holding, name string) (*snapshot.Holding, error) {
	var names []string
	for _, h := range all {
		if n := taskName(h.Task); n == name {
			return h, nil
		} else {
			names = append(names, n)
		}
	}
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	if name == "" {
		return nil, fmt.Errorf("the app has several tasks: name one with --task: %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is nothing of task %s: name one of these with --task: %s", name, strings.Join(names, ", "))
}

// chooseCommit returns the manifest of a name, or the newest.
func chooseCommit(h *snapshot.Holding, name string) (*snapshot.Manifest, error) {
	names := commitNames(h.Found)
	at := slices.Index(names, name)
	if name == "" {
		at = len(names) - 1
	}
	others := func(at int) string {
		rest := slices.Clone(names)
		if at >= 0 {
			rest = slices.Delete(rest, at, at+1)
		}
		if len(rest) == 0 {
			return "there is no other one"
		}
		return "choose with --commit: " + strings.Join(rest, ", ")
	}
	if at < 0 && len(names) == 0 {
		return nil, fmt.Errorf("task %s has no manifest, only files that belong to none", taskName(h.Task))
	}
	if at < 0 {
		return nil, fmt.Errorf("task %s has no snapshot of commit %s: %s", taskName(h.Task), name, others(at))
	}
	f := h.Found[at]
	if f.Err != nil {
		return nil, &told{fmt.Sprintf("the manifest of commit %s is %s", names[at], flawText(snapshot.Flaw{Err: f.Err})), others(at), f.Err}
	}
	if have, most := f.Manifest.Format, pebblestore.FormatVersion(); have > most {
		return nil, fmt.Errorf("the database of commit %s has format %d, this tidemark opens up to %d: use a newer one", names[at], have, most)
	}
	return f.Manifest, nil
}

// withSnapshot fetches a snapshot, opens it, and removes it again.
func withSnapshot(ctx context.Context, bucket objects.Store, m *snapshot.Manifest, fn func(store.DB) error) (err error) {
	temp, err := os.MkdirTemp("", "tidemark-snapshot-")
	if err != nil {
		return fmt.Errorf("no room for the snapshot: %w; choose another directory with TMPDIR", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	dir := filepath.Join(temp, "db")
	r, err := pebblestore.NewRestore(nil, dir)
	if err != nil {
		return err
	}
	target := snapshot.TargetFunc(func(name string) (snapshot.Sink, error) { return r.Create(name) })
	err = snapshot.Download(ctx, bucket, m, target, snapshot.Options{})
	if err == nil {
		err = r.Finish()
	}
	switch {
	case errors.Is(err, snapshot.ErrDamaged), errors.Is(err, objects.ErrNotFound):
		return &told{err.Error(), "choose another snapshot with --commit; tidemark snapshot verify says which are whole", err}
	case errors.Is(err, store.ErrStorage):
		return &told{err.Error(), fmt.Sprintf("it needs %s: choose a directory with enough room with TMPDIR", size(m.Bytes())), err}
	case err != nil:
		return bucketAdvised(err)
	}
	db, err := pebblestore.Open(dir, pebblestore.Options{Quiet: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}

// dump says which rows are printed.
type dump struct {
	store  string
	prefix *string
	limit  int
}

func (d *dump) check() error {
	if d.limit < 0 {
		return fmt.Errorf("--limit %d is none: say how many rows, or 0 for all", d.limit)
	}
	if d.prefix != nil && d.store == "" {
		return errors.New("--prefix is one of keys of a store: add --store")
	}
	return nil
}

// stores returns the stores whose rows are printed.
func (d *dump) stores(db store.DB) ([]store.Stored, error) {
	all, err := store.ReadStores(db)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s store.Stored) bool { return s.Internal })
	if d.store == "" {
		return all, nil
	}
	var names []string
	for _, s := range all {
		if s.Spec.ID != d.store {
			names = append(names, s.Spec.ID)
			continue
		}
		if k := s.Spec.KeySchema; d.prefix != nil && k != "string" {
			return nil, fmt.Errorf("--prefix is text, and keys of store %s are %s: leave it out", d.store, k)
		}
		if s.Spec.Kind == store.Dedup && d.prefix != nil {
			return nil, fmt.Errorf("--prefix: the rows of store %s are hashes: leave it out", d.store)
		}
		return []store.Stored{s}, nil
	}
	return nil, fmt.Errorf("the task has no store %q: it has %s", d.store, strings.Join(names, ", "))
}

// head says what is shown, and what is not.
func (d *dump) head(m *snapshot.Manifest, list []store.Stored, clk clock.Clock) string {
	s := fmt.Sprintf("task %s as of commit %d at %s, %v ago", taskName(m.Task()), m.Seq, moment(&m.Time), age(clk.Now(), m.Time))
	var ends []string
	for _, st := range list {
		if end, ok := m.End(st.Spec.ID); ok {
			ends = append(ends, fmt.Sprintf("%s from offset %d", st.Spec.ID, end))
		}
	}
	s += "; what was committed after that is in the changelogs only and is not shown"
	if len(ends) > 0 {
		s += ": " + strings.Join(ends, ", ")
	}
	return s
}

func (d *dump) print(cmd *cobra.Command, db store.DB, list []store.Stored) error {
	l := newLines(cmd.OutOrStdout())
	for _, s := range list {
		if err := d.printStore(cmd, db, s, newStoredRows(s), l); err != nil {
			return err
		}
	}
	return nil
}

func (d *dump) printStore(cmd *cobra.Command, db store.DB, s store.Stored, rows *storedRows, l *lines) (err error) {
	var prefix []byte
	if k := s.Spec.Kind; d.prefix != nil && (k == store.KeyValue || k == store.Expiring) {
		prefix = []byte(*d.prefix)
	}
	it, err := s.Scan(db, prefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	shown := 0
	for it.Next() {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		r, ok := rows.row(it.Key(), it.Value())
		if !ok || d.prefix != nil && !strings.HasPrefix(string(r.key), *d.prefix) {
			continue
		}
		if d.limit > 0 && shown == d.limit {
			cmd.PrintErrf("store %s has more rows than %d: ask for them with --limit, 0 is all\n", s.Spec.ID, d.limit)
			return nil
		}
		shown++
		if err := l.print(r.storedLine); err != nil {
			return err
		}
	}
	return it.Err()
}
