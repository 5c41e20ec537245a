package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/s3"
	"github.com/tidemark/tidemark/changelog/snapshot"
	"github.com/tidemark/tidemark/internal/s3test"
	"github.com/tidemark/tidemark/internal/taskstore"
	"github.com/tidemark/tidemark/internal/verify/witness"
	"github.com/tidemark/tidemark/internal/verify/workload"
	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/store"
	"github.com/tidemark/tidemark/store/pebblestore"
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
	reader, err := changelog.NewReader(changelog.ReaderConfig{Client: s.client})
	if err != nil {
		return err
	}
	defer reader.Close()
	cl, err := kgo.NewClient(s.client...)
	if err != nil {
		return err
	}
	defer cl.Close()
	var disks []*witness.Disk
	for _, sub := range plan.Subs {
		for p := range int32(partitions) {
			if len(sub.Stores) == 0 {
				continue
			}
			refs, err := references(ctx, cl, reader, names.Progress(sub.ID), p)
			if err != nil {
				return fmt.Errorf("%s/%d: %w", sub.ID, p, err)
			}
			for _, ref := range refs {
				d, err := s.fetch(ctx, bucket, ref, processor.TaskID{Sub: sub.ID, Partition: p}, sub.Stores)
				if err != nil {
					return err
				}
				disks = append(disks, d)
			}
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

// references returns what the newest progress record of a task says of snapshots.
func references(ctx context.Context, cl *kgo.Client, reader *changelog.Reader, topic string, p int32) ([]snapshot.Ref, error) {
	tp := changelog.TopicPartition{Topic: topic, Partition: p}
	bounds, err := changelog.ListBounds(ctx, cl, []changelog.TopicPartition{tp})
	if err != nil {
		return nil, err
	}
	tail, err := reader.ReadTail(ctx, topic, p, bounds[tp].HighWatermark)
	if err != nil || tail.Record == nil {
		return nil, err
	}
	return snapshot.DecodeRefs(tail.Record.Section(changelog.SectionSnapshots))
}

// fetch makes a database of a snapshot and reads it.
func (s *scene) fetch(ctx context.Context, bucket objects.Store, ref snapshot.Ref, id processor.TaskID, specs []store.Spec) (*witness.Disk, error) {
	m, err := snapshot.Load(ctx, bucket, ref)
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "verify-snapshot-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	dir := taskstore.New(taskstore.Options{Path: filepath.Join(tmp, "db"), FS: pebblestore.OSFS()})
	fill, err := dir.Fill(id)
	if err != nil {
		return nil, err
	}
	if err := snapshot.Download(ctx, bucket, m, fill, snapshot.Options{}); err != nil {
		return nil, err
	}
	if err := fill.Finish(); err != nil {
		return nil, err
	}
	db, err := dir.Open(id)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return witness.ReadDisk(fmt.Sprintf("snapshot of commit %d", ref.Seq), id, db, specs)
}
