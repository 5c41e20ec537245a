package s3

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	client "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tidemark/tidemark/changelog/objects"
)

// List implements objects.Store. Objects of the bucket whose keys are none of ours are not shown.
func (s *Store) List(ctx context.Context, prefix string, fn func(objects.Info) error) error {
	if prefix != "" && objects.CheckKey(prefix+"x") != nil {
		return fmt.Errorf("s3: list: %w: prefix %q", objects.ErrKey, prefix)
	}
	var token *string
	for {
		var page *client.ListObjectsV2Output
		err := s.retry(ctx, func() (err error) {
			page, err = s.client.ListObjectsV2(ctx, &client.ListObjectsV2Input{
				Bucket: &s.opts.Bucket, Prefix: s.name(prefix), ContinuationToken: token,
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("s3: list %q: %w", prefix, err)
		}
		for _, o := range page.Contents {
			key, ok := s.key(aws.ToString(o.Key))
			if !ok {
				continue
			}
			if err := fn(objects.Info{Key: key, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)}); err != nil {
				return err
			}
		}
		if token = page.NextContinuationToken; !aws.ToBool(page.IsTruncated) || token == nil {
			return nil
		}
	}
}

// maxDelete is how many objects one request deletes.
const maxDelete = 1000

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := objects.CheckKey(key); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("s3: delete: %w", err)
	}
	for len(keys) > 0 {
		n := min(len(keys), maxDelete)
		if err := s.remove(ctx, keys[:n]); err != nil {
			return fmt.Errorf("s3: delete %d objects from %s: %w", n, keys[0], err)
		}
		keys = keys[n:]
	}
	return nil
}

// remove deletes what one request can. Deleting again what is gone does no harm.
func (s *Store) remove(ctx context.Context, keys []string) error {
	ids := make([]types.ObjectIdentifier, len(keys))
	for i, key := range keys {
		ids[i].Key = s.name(key)
	}
	return s.retry(ctx, func() error {
		out, err := s.client.DeleteObjects(ctx, &client.DeleteObjectsInput{
			Bucket: &s.opts.Bucket, Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)},
		})
		if err != nil {
			return err
		}
		return partial(out.Errors)
	})
}

// partialError says that some objects of a request were not deleted.
type partialError struct {
	n      int
	first  types.Error
	passes bool // of all of them
}

func (e *partialError) Error() string {
	return fmt.Sprintf("%d not deleted, the first is %s: %s: %s", e.n, aws.ToString(e.first.Key), aws.ToString(e.first.Code), aws.ToString(e.first.Message))
}

func partial(errs []types.Error) error {
	e := &partialError{passes: true}
	for _, one := range errs {
		c := aws.ToString(one.Code)
		if c == "NoSuchKey" {
			continue
		}
		if e.n == 0 {
			e.first = one
		}
		e.n++
		e.passes = e.passes && codePasses(c)
	}
	if e.n == 0 {
		return nil
	}
	return e
}
