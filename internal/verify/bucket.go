package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/s3"
	"github.com/tidemark/tidemark/internal/s3test"
	"github.com/tidemark/tidemark/internal/verify/witness"
	"github.com/tidemark/tidemark/internal/verify/workload"
)

const bucketName = "snapshots"

// bucketServer is an S3 server that is started when it is first asked for.
type bucketServer struct {
	dir    string
	server *s3test.Server
}

func (b *bucketServer) endpoint(ctx context.Context) (string, error) {
	if b.server == nil {
		if err := os.MkdirAll(b.dir, 0o755); err != nil {
			return "", err
		}
		server, err := s3test.Start(ctx, s3test.Options{Dir: b.dir})
		if err != nil {
			return "", err
		}
		b.server = server
		if err := server.CreateBucket(bucketName); err != nil {
			return "", err
		}
	}
	return b.server.Endpoint(), nil
}

func (b *bucketServer) stop() error {
	if b.server == nil {
		return nil
	}
	return b.server.Stop()
}

func openBucket(ctx context.Context, endpoint string) (objects.Store, error) {
	return s3.New(ctx, s3.Options{
		Bucket: bucketName, Endpoint: endpoint, PathStyle: true, Region: "us-east-1",
		AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
	})
}

// compareSnapshots makes a database of every snapshot that the last progress records name, and compares it with what the
// changelogs give up to its positions.
func (s *scene) compareSnapshots(ctx context.Context) error {
	bucket, err := openBucket(ctx, s.bucket)
	if err != nil {
		return err
	}
	names, err := changelog.NewNames(s.app(), 0)
	if err != nil {
		return err
	}
	plan, err := workload.Topology(s.app(), s.topics).Build()
	if err != nil {
		return err
	}
	retained, err := witness.ReadRetained(ctx, s.client, names, plan)
	if err != nil {
		return err
	}
	var disks []*witness.Disk
	for _, r := range retained {
		for _, ref := range r.Refs {
			d, err := r.OpenSnapshot(ctx, bucket, ref)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Task, err)
			}
			disks = append(disks, d)
		}
	}
	if len(disks) == 0 {
		s.report.Wrongly("no snapshot is left")
		return nil
	}
	r, err := witness.CompareDisks(ctx, s.client, names, disks)
	if err != nil {
		return err
	}
	s.snapshots = len(disks)
	s.report.Add(r)
	return nil
}
