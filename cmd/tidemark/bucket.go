package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/s3"
	"github.com/tidemark/tidemark/changelog/snapshot"
)

// bucket is where snapshots are looked for: what all commands about them have in common.
type bucket struct {
	dir, s3          string
	endpoint, region string
	pathStyle        bool
	app              string
	output           string
}

func (b *bucket) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.dir, "dir", "", "directory that holds the snapshots")
	f.StringVar(&b.s3, "s3", "", "bucket that holds them, with the prefix the app was given: bucket or bucket/prefix")
	f.StringVar(&b.endpoint, "endpoint", "", "with --s3: URL of a server other than Amazon's (default that of the environment)")
	f.StringVar(&b.region, "region", "", "with --s3: region of the bucket (default that of the environment, else us-east-1)")
	f.BoolVar(&b.pathStyle, "path-style", false, "with --s3: the bucket is part of the path, as most servers but Amazon's want it")
	f.StringVar(&b.app, "app", "", "application id (required)")
	complete(cmd, "dir", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	cmd.MarkFlagsMutuallyExclusive("dir", "s3")
}

func (b *bucket) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&b.output, "output", "o", asTable, "table, or json: one object per line")
	complete(cmd, "output", cobra.FixedCompletions([]string{asTable, asJSON}, cobra.ShellCompDirectiveNoFileComp))
}

// attempts is how often a request to a bucket is sent: somebody waits for the answer.
const attempts = 4

// open returns the store.
func (b *bucket) open(ctx context.Context) (objects.Store, error) {
	if b.output != "" && b.output != asTable && b.output != asJSON {
		return nil, fmt.Errorf("--output %s is none: say table or json", b.output)
	}
	switch {
	case b.dir == "" && b.s3 == "":
		return nil, errors.New("no snapshots to look at: say where they are with --dir DIR or --s3 BUCKET/PREFIX")
	case b.s3 == "" && (b.endpoint != "" || b.region != "" || b.pathStyle):
		return nil, errors.New("--endpoint, --region and --path-style belong to --s3: name a bucket with it, or leave them out")
	case b.endpoint != "" && !strings.HasPrefix(b.endpoint, "http://") && !strings.HasPrefix(b.endpoint, "https://"):
		return nil, fmt.Errorf("--endpoint %s is no URL: say http://%[1]s or https://%[1]s", b.endpoint)
	case b.dir != "":
		d, err := objects.OpenDir(b.dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &told{"--dir " + b.dir + " does not exist", "name the directory that the app was given as Config.Snapshots.Store", err}
		}
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, &told{"--dir " + b.dir + " is no directory", "name the one that the app was given as Config.Snapshots.Store", err}
		}
		if err != nil {
			return nil, bucketAdvised(err)
		}
		return d, nil
	}
	name, prefix, _ := strings.Cut(b.s3, "/")
	store, err := s3.New(ctx, s3.Options{
		Bucket: name, Prefix: strings.TrimSuffix(prefix, "/"), Endpoint: b.endpoint, Region: b.region, PathStyle: b.pathStyle, MaxAttempts: attempts,
	})
	if err != nil {
		return nil, bucketAdvised(err)
	}
	return store, nil
}

func (b *bucket) name() string {
	if b.dir != "" {
		return b.dir
	}
	return "bucket " + b.s3
}

// survey opens the store and lists what it holds of the app, which is something.
func (b *bucket) survey(ctx context.Context) (objects.Store, []*snapshot.Holding, error) {
	store, err := b.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if b.app == "" {
		return nil, nil, errors.New("--app is missing: say which app's snapshots" + b.others(ctx, store))
	}
	if strings.Contains(b.app, "/") || objects.CheckKey(b.app) != nil {
		return nil, nil, fmt.Errorf("--app %q is no id of an app", b.app)
	}
	all, err := snapshot.Survey(ctx, store, b.app)
	if err != nil {
		return nil, nil, bucketAdvised(err)
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s holds no snapshots of app %s: look at --app and at the prefix%s", b.name(), b.app, b.others(ctx, store))
	}
	return store, all, nil
}

// othersTimeout bounds how long an error waits for advice.
const othersTimeout = 5 * time.Second

// others names the apps that a store has snapshots of, for an error, as far as they are found in time.
func (b *bucket) others(ctx context.Context, store objects.Store) string {
	ctx, cancel := context.WithTimeout(ctx, othersTimeout)
	defer cancel()
	refs, err := snapshot.Find(ctx, store, "")
	apps := make(map[string]bool)
	for _, r := range refs {
		app, _, _ := strings.Cut(r.Key, "/")
		apps[app] = true
	}
	if err != nil || len(apps) == 0 {
		return ""
	}
	return "; it has those of " + strings.Join(slices.Sorted(maps.Keys(apps)), ", ")
}

// bucketAdvised says what to change when a store does not answer as it should.
func bucketAdvised(err error) error {
	var code interface{ ErrorCode() string }
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &code):
		return &told{err.Error(), codeAdvice[code.ErrorCode()], err}
	case errors.Is(err, fs.ErrPermission):
		return &told{err.Error(), "run it as the user the app runs as: files of snapshots are readable by their owner only", err}
	case os.IsTimeout(err), strings.Contains(err.Error(), "connection refused"), strings.Contains(err.Error(), "no such host"):
		return &told{err.Error(), "look at --endpoint and --path-style", err}
	case strings.Contains(err.Error(), "get identity"), strings.Contains(err.Error(), "credentials"):
		return &told{err.Error(), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", err}
	}
	return err
}

// codeAdvice is advice by the error code of S3.
var codeAdvice = map[string]string{
	"NoSuchBucket":                 "look at --s3 and --endpoint",
	"AccessDenied":                 "these credentials may not read the bucket: look at AWS_ACCESS_KEY_ID or AWS_PROFILE, and at the bucket's policy",
	"InvalidAccessKeyId":           "look at AWS_ACCESS_KEY_ID or AWS_PROFILE",
	"SignatureDoesNotMatch":        "look at AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
	"AuthorizationHeaderMalformed": "look at --region",
	"PermanentRedirect":            "look at --region and --endpoint",
	"IllegalLocationConstraint":    "look at --region",
}
