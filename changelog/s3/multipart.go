package s3

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	client "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// maxParts is the most parts of which S3 makes an object.
const maxParts = 10_000

// putParts sends an object part by part; it appears when the last request succeeds. One part is on its way at a time: several
// files are put at the same time anyway. On failure the parts are given up.
func (s *Store) putParts(ctx context.Context, key string, body *io.SectionReader, condition *string) error {
	var upload *client.CreateMultipartUploadOutput
	err := s.retry(ctx, func() (err error) {
		upload, err = s.client.CreateMultipartUpload(ctx, &client.CreateMultipartUploadInput{
			Bucket: &s.opts.Bucket, Key: s.name(key), ChecksumAlgorithm: s.checksum(),
			ServerSideEncryption: types.ServerSideEncryption(s.opts.Encryption), SSEKMSKeyId: s.kmsKey(),
		})
		return err
	})
	if err != nil {
		return err
	}
	parts, err := s.sendParts(ctx, key, upload.UploadId, body)
	if err == nil {
		err = s.complete(ctx, key, upload.UploadId, parts, body.Size(), condition)
	}
	if err != nil {
		return errors.Join(err, s.abort(ctx, key, upload.UploadId))
	}
	return nil
}

func (s *Store) sendParts(ctx context.Context, key string, id *string, body *io.SectionReader) ([]types.CompletedPart, error) {
	size := max(s.opts.PartBytes, (body.Size()+maxParts-1)/maxParts)
	var parts []types.CompletedPart
	for at := int64(0); at < body.Size(); at += size {
		n := min(size, body.Size()-at)
		number := aws.Int32(int32(len(parts) + 1))
		err := s.retry(ctx, func() error {
			out, err := s.client.UploadPart(ctx, &client.UploadPartInput{
				Bucket: &s.opts.Bucket, Key: s.name(key), UploadId: id, PartNumber: number,
				Body: io.NewSectionReader(body, at, n), ContentLength: &n, ChecksumAlgorithm: s.checksum(),
			})
			if err == nil {
				parts = append(parts, types.CompletedPart{PartNumber: number, ETag: out.ETag, ChecksumCRC32C: out.ChecksumCRC32C})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func (s *Store) complete(ctx context.Context, key string, id *string, parts []types.CompletedPart, size int64, condition *string) error {
	lost := false
	return s.retry(ctx, func() error {
		_, err := s.client.CompleteMultipartUpload(ctx, &client.CompleteMultipartUploadInput{
			Bucket: &s.opts.Bucket, Key: s.name(key), UploadId: id, IfNoneMatch: condition,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		return s.answered(ctx, key, size, err, &lost)
	})
}

// abortTime bounds the attempt to give up parts.
const abortTime = 10 * time.Second

// abort gives up the parts of an upload, also when the upload ended because its context did. It tries once: what stays is
// removed by a rule of the bucket.
func (s *Store) abort(ctx context.Context, key string, id *string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	_, err := s.client.AbortMultipartUpload(ctx, &client.AbortMultipartUploadInput{Bucket: &s.opts.Bucket, Key: s.name(key), UploadId: id})
	if code(err) == "NoSuchUpload" {
		return nil
	}
	return err
}
