package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	client "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Get implements objects.Store. A reader whose connection breaks goes on where it was, as long as the object is the same.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := objects.CheckKey(key); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("s3: get %s: %w: offset %d", key, objects.ErrKey, offset)
	}
	r := &reader{s: s, ctx: ctx, key: key, at: offset, length: length}
	var err error
	if length == 0 {
		err = s.retry(ctx, r.head) // there is no empty range
	} else {
		err = s.retry(ctx, r.open)
	}
	if missing(err) {
		return nil, fmt.Errorf("s3: get %s: %w", key, objects.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("s3: get %s: %w", key, err)
	}
	return r, nil
}

// reader reads a range of an object over as many connections as it takes.
type reader struct {
	s    *Store
	ctx  context.Context
	key  string
	etag *string // of what is being read

	opened bool          // there was an answer
	at     int64         // offset of the next byte
	length int64         // what was asked for; after the first answer, what is left
	body   io.ReadCloser // nil when nothing is left, or to be opened again
	fails  int           // in a row, without a byte in between
}

// head finds out whether the object exists.
func (r *reader) head() error {
	_, err := r.s.client.HeadObject(r.ctx, &client.HeadObjectInput{Bucket: &r.s.opts.Bucket, Key: r.s.name(r.key)})
	return err
}

// open asks for what is left.
func (r *reader) open() error {
	in := &client.GetObjectInput{Bucket: &r.s.opts.Bucket, Key: r.s.name(r.key), IfMatch: r.etag}
	switch {
	case r.length > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", r.at, r.at+r.length-1))
	case r.at > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", r.at))
	}
	out, err := r.s.client.GetObject(r.ctx, in)
	if err != nil {
		if !r.opened && status(err) == http.StatusRequestedRangeNotSatisfiable {
			r.length = 0
			return nil
		}
		return err
	}
	n := aws.ToInt64(out.ContentLength)
	switch {
	case in.Range != nil && !strings.HasPrefix(aws.ToString(out.ContentRange), fmt.Sprintf("bytes %d-", r.at)):
		err = fmt.Errorf("asked for %s, got %q", *in.Range, aws.ToString(out.ContentRange))
	case out.ContentLength == nil || r.opened && n != r.length || r.length > 0 && n > r.length:
		err = fmt.Errorf("asked for %d bytes, got %d", r.length, n)
	}
	if err != nil {
		return errors.Join(err, out.Body.Close())
	}
	if !r.opened {
		r.opened, r.etag = true, out.ETag
	}
	r.body, r.length = out.Body, n
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.length == 0 {
			return 0, io.EOF
		}
		if err := r.ctx.Err(); err != nil {
			return 0, fmt.Errorf("s3: read %s at %d: %w", r.key, r.at, err)
		}
		if r.body == nil {
			if err := r.open(); err != nil {
				if err := r.failed(err); err != nil {
					return 0, err
				}
				continue
			}
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.length)])
		r.at += int64(n)
		r.length -= int64(n)
		if n > 0 {
			r.fails = 0
		}
		if err != nil && r.length > 0 {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			err = r.failed(err)
		} else {
			err = nil // the rest of the answer says nothing new
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// failed closes what has failed and waits, or returns the error when it is final.
func (r *reader) failed(err error) error {
	if r.body != nil {
		_ = r.body.Close()
		r.body = nil
	}
	r.fails++
	if r.ctx.Err() != nil {
		err = r.ctx.Err()
	} else if r.fails < r.s.opts.MaxAttempts && passes(err) {
		err = r.s.pause(r.ctx, r.fails)
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("s3: read %s at %d: %w", r.key, r.at, err)
}

func (r *reader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	if err != nil {
		return fmt.Errorf("s3: close %s: %w", r.key, err)
	}
	return nil
}
