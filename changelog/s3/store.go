package s3

import (
	"strings"

	client "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/clock"
)

// Store is an objects.Store in a bucket.
type Store struct {
	opts   Options
	clk    clock.Clock
	client *client.Client
	single int64 // size up to which an object is put in one request
}

var _ objects.Store = (*Store)(nil)

// name returns the key in the bucket.
func (s *Store) name(key string) *string {
	if s.opts.Prefix != "" {
		key = s.opts.Prefix + "/" + key
	}
	return &key
}

// key is the inverse of name. What has another form is not ours.
func (s *Store) key(name string) (string, bool) {
	if s.opts.Prefix != "" {
		var ok bool
		if name, ok = strings.CutPrefix(name, s.opts.Prefix+"/"); !ok {
			return "", false
		}
	}
	return name, objects.CheckKey(name) == nil
}

// checksum is the algorithm of what is put.
func (s *Store) checksum() types.ChecksumAlgorithm {
	if s.opts.Checksums == checksumsRequired {
		return ""
	}
	return types.ChecksumAlgorithmCrc32c
}

// kmsKey is nil if none was chosen.
func (s *Store) kmsKey() *string {
	if s.opts.KMSKey == "" {
		return nil
	}
	return &s.opts.KMSKey
}
