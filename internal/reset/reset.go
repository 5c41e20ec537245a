// Package reset takes an app back to where it has never run: without committed offsets, internal topics and
// local state. It looks first (Look) and acts only on what it has shown (Plan.Do).
//
// It must never touch a topic of the user's, nor anything while the app has members. It runs on the caller's
// goroutine.
package reset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
)

// ErrRunning: the app has members; its instances must be stopped first.
var ErrRunning = errors.New("the app is running")

// ErrNothing: there is nothing to reset; probably the app id is wrong.
var ErrNothing = errors.New("nothing to reset")

// Options say what to look at.
type Options struct {
	// App is the application id.
	App string
	// StateDir is the state directory of this machine; empty leaves local state alone.
	StateDir string
	// DeadLetter deletes the dead-letter and late topics too.
	DeadLetter bool
}

// Plan is what a reset would do.
type Plan struct {
	opts    Options
	Members int               // of the group; Do refuses unless 0
	Offsets []Offset          // committed, sorted
	Topics  []string          // to be deleted, sorted
	Kept    []string          // the app's topics that hold results for people: dead letters, late records
	Local   string            // directory to be removed, empty without one
	class   map[string]string // of the topics
}

// Offset is a committed offset of the app's group.
type Offset struct {
	Topic     string
	Partition int32
	At        int64
}

// Look finds out what a reset of the app would do. It changes nothing.
func Look(ctx context.Context, cl *kgo.Client, o Options) (*Plan, error) {
	names, err := changelog.NewNames(o.App, 0)
	if err != nil {
		return nil, fmt.Errorf("reset: %w", err)
	}
	p := &Plan{opts: o, class: make(map[string]string)}
	adm := kadm.NewClient(cl)
	groups, err := adm.DescribeGroups(ctx, names.Group())
	if err != nil {
		return nil, fmt.Errorf("reset: describe group %s: %w", names.Group(), err)
	}
	if g, ok := groups[names.Group()]; ok && (g.Err == nil || errors.Is(g.Err, kerr.GroupIDNotFound)) {
		p.Members = len(g.Members)
	}
	offsets, err := adm.FetchOffsets(ctx, names.Group())
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("reset: read offsets of group %s: %w", names.Group(), err)
	}
	for _, f := range offsets.Sorted() {
		if f.At >= 0 {
			p.Offsets = append(p.Offsets, Offset{f.Topic, f.Partition, f.At})
		}
	}
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("reset: list topics: %w", err)
	}
	for _, t := range topics.Names() {
		class, _, ok := names.Parse(t)
		if !ok {
			continue
		}
		if !o.DeadLetter && (class == changelog.DeadLetter || class == changelog.Late) {
			p.Kept = append(p.Kept, t)
			continue
		}
		p.Topics = append(p.Topics, t)
		p.class[t] = class.String()
	}
	slices.Sort(p.Topics)
	slices.Sort(p.Kept)
	if o.StateDir != "" {
		dir := filepath.Join(o.StateDir, o.App)
		if _, err := os.Stat(dir); err == nil {
			p.Local = dir
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reset: %w", err)
		}
	}
	return p, nil
}

// Empty says whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Offsets) == 0 && len(p.Topics) == 0 && p.Local == "" }

// Print writes the plan for people.
func (p *Plan) Print(w io.Writer) {
	fmt.Fprintf(w, "app %s\n", p.opts.App)
	if p.Members > 0 {
		fmt.Fprintf(w, "  has %d members: stop all instances first\n", p.Members)
	}
	fmt.Fprintf(w, "committed offsets to forget: %d\n", len(p.Offsets))
	for _, o := range p.Offsets {
		fmt.Fprintf(w, "  %s/%d at %d\n", o.Topic, o.Partition, o.At)
	}
	fmt.Fprintf(w, "internal topics to delete: %d\n", len(p.Topics))
	for _, t := range p.Topics {
		fmt.Fprintf(w, "  %s (%s)\n", t, p.class[t])
	}
	for _, t := range p.Kept {
		fmt.Fprintf(w, "kept: %s\n", t)
	}
	if p.Local != "" {
		fmt.Fprintf(w, "local state to remove: %s\n", p.Local)
	}
}

// Do carries the plan out: offsets first, so that a reset cut short is found as foreign state at the next start
// and never mistaken for a running app; then topics; then local state. It may be repeated.
func (p *Plan) Do(ctx context.Context, cl *kgo.Client) error {
	if p.Members > 0 {
		return fmt.Errorf("reset: %w: group %s has %d members", ErrRunning, p.opts.App, p.Members)
	}
	if p.Empty() {
		return fmt.Errorf("reset: app %s: %w", p.opts.App, ErrNothing)
	}
	adm := kadm.NewClient(cl)
	if resp, err := adm.DeleteGroup(ctx, p.opts.App); err != nil || resp.Err != nil {
		err = errors.Join(err, resp.Err)
		switch {
		case errors.Is(err, kerr.NonEmptyGroup):
			return fmt.Errorf("reset: %w: group %s has got members meanwhile", ErrRunning, p.opts.App)
		case !errors.Is(err, kerr.GroupIDNotFound):
			return fmt.Errorf("reset: delete group %s: %w", p.opts.App, err)
		}
	}
	if len(p.Topics) > 0 {
		resp, err := adm.DeleteTopics(ctx, p.Topics...)
		if err != nil {
			return fmt.Errorf("reset: delete topics: %w", err)
		}
		var errs []error
		for _, r := range resp.Sorted() {
			if r.Err != nil && !errors.Is(r.Err, kerr.UnknownTopicOrPartition) {
				errs = append(errs, fmt.Errorf("reset: delete topic %s: %w", r.Topic, r.Err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	if p.Local != "" {
		if err := os.RemoveAll(p.Local); err != nil {
			return fmt.Errorf("reset: remove local state: %w", err)
		}
	}
	return nil
}
