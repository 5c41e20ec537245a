package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	client "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body *io.SectionReader) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	send := s.put
	if body.Size() > s.single {
		send = s.putParts
	}
	strict := io.NewSectionReader(strictReader{body, body.Size()}, 0, body.Size())
	err := send(ctx, key, strict, aws.String("*"))
	if taken(err) {
		err = send(ctx, key, strict, nil)
	}
	if err != nil {
		return fmt.Errorf("s3: put %s: %w", key, err)
	}
	return nil
}

// taken reports that a key is not free, or that the server does not know conditions.
func taken(err error) bool {
	n := status(err)
	return n == http.StatusPreconditionFailed || n == http.StatusNotImplemented
}

// put sends an object in one request. The condition is nil, or "*" for a key that must be free.
func (s *Store) put(ctx context.Context, key string, body *io.SectionReader, condition *string) error {
	lost := false
	return s.retry(ctx, func() error {
		_, err := s.client.PutObject(ctx, &client.PutObjectInput{
			Bucket: &s.opts.Bucket, Key: s.name(key), IfNoneMatch: condition,
			Body: io.NewSectionReader(body, 0, body.Size()), ContentLength: aws.Int64(body.Size()),
			ChecksumAlgorithm:    s.checksum(),
			ServerSideEncryption: types.ServerSideEncryption(s.opts.Encryption), SSEKMSKeyId: s.kmsKey(),
		})
		return s.answered(ctx, key, body.Size(), err, &lost)
	})
}

// answered returns nil for the error that says that an attempt of this call has succeeded already, whose answer was lost.
func (s *Store) answered(ctx context.Context, key string, size int64, err error, lost *bool) error {
	if err == nil {
		return nil
	}
	if *lost && (status(err) == http.StatusPreconditionFailed || code(err) == "NoSuchUpload") && s.ours(ctx, key, size) {
		return nil
	}
	if n := status(err); n < 400 || n >= 500 {
		*lost = true
	}
	return err
}

// fresh is how long ago, by the clock of the server, an attempt of this call may have been.
const fresh = 15 * time.Minute

// ours says whether an object has just been put and has the right size.
func (s *Store) ours(ctx context.Context, key string, size int64) bool {
	out, err := s.client.HeadObject(ctx, &client.HeadObjectInput{Bucket: &s.opts.Bucket, Key: s.name(key)})
	if err != nil || aws.ToInt64(out.ContentLength) != size || out.LastModified == nil {
		return false // it is put once more, which does no harm
	}
	now, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	return ok && now.Sub(*out.LastModified) < fresh
}

// errBody marks errors of the source of a body: sending it again does not help.
var errBody = errors.New("body")

// strictReader reads a body that has the size it says, and marks its errors.
type strictReader struct {
	body *io.SectionReader
	size int64
}

func (r strictReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.body.ReadAt(p, off)
	if err == io.EOF && off+int64(n) < r.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		err = &bodyError{err}
	}
	return n, err
}

// bodyError is an error of the source of a body.
type bodyError struct{ err error }

func (e *bodyError) Error() string        { return "read body: " + e.err.Error() }
func (e *bodyError) Unwrap() error        { return e.err }
func (e *bodyError) Is(target error) bool { return target == errBody }
