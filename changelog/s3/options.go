package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	client "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/clock"
)

// Options say where the bucket is and how it is talked to.
type Options struct {
	// Bucket is the name of the bucket, which must exist. Required.
	Bucket string
	// Prefix is put before every key, with a slash in between. Default: none.
	Prefix string
	// Region of the bucket. Default: that of the environment or the shared configuration, else us-east-1.
	Region string
	// Endpoint is the URL of a server other than Amazon's. Default: that of the environment, else Amazon's.
	Endpoint string
	// PathStyle puts the bucket into the path instead of the host name, which most other servers need.
	PathStyle bool
	// AccessKey, SecretKey and SessionToken are fixed credentials. Default: the usual chain of environment, shared
	// configuration, web identity, container and instance roles.
	AccessKey, SecretKey, SessionToken string
	// Encryption is what the server encrypts objects with: "AES256", "aws:kms", or "" for the bucket's own setting.
	Encryption string
	// KMSKey is the key for "aws:kms". Default: the account's.
	KMSKey string
	// Checksums says when a CRC32C goes along with what is put: "supported" (default), or "required" for old servers that
	// refuse it.
	Checksums string
	// MaxAttempts is how often a request is sent before its error counts. Default: 8, with pauses of half a minute
	// at most in all.
	MaxAttempts int
	// Timeout is how long a connection may be silent. Default: 30 s.
	Timeout time.Duration
	// PartBytes is the size of the parts of objects above 64 MiB, at least 5 MiB. Default: 16 MiB.
	PartBytes int64
}

const (
	defaultRegion   = "us-east-1"
	defaultAttempts = 8
	defaultTimeout  = 30 * time.Second
	defaultPart     = 16 << 20
	minPart         = 5 << 20
	maxSingle       = 64 << 20

	checksumsSupported = "supported"
	checksumsRequired  = "required"
)

func (o *Options) check() error {
	if o.MaxAttempts == 0 {
		o.MaxAttempts = defaultAttempts
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.PartBytes == 0 {
		o.PartBytes = defaultPart
	}
	if o.Checksums == "" {
		o.Checksums = checksumsSupported
	}
	switch {
	case o.Bucket == "":
		return errors.New("no bucket")
	case o.Prefix != "" && objects.CheckKey(o.Prefix) != nil:
		return fmt.Errorf("prefix %q: %w", o.Prefix, objects.ErrKey)
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return errors.New("access key and secret key go together")
	case o.Encryption != "" && o.Encryption != string(types.ServerSideEncryptionAes256) && o.Encryption != string(types.ServerSideEncryptionAwsKms):
		return fmt.Errorf("encryption %q, want AES256 or aws:kms", o.Encryption)
	case o.KMSKey != "" && o.Encryption != string(types.ServerSideEncryptionAwsKms):
		return errors.New("a KMS key needs the encryption aws:kms")
	case o.Checksums != checksumsSupported && o.Checksums != checksumsRequired:
		return fmt.Errorf("checksums %q, want supported or required", o.Checksums)
	case o.MaxAttempts < 0 || o.Timeout < 0:
		return fmt.Errorf("%d attempts, time-out %v", o.MaxAttempts, o.Timeout)
	case o.PartBytes < minPart:
		return fmt.Errorf("parts of %d bytes, the smallest are %d", o.PartBytes, minPart)
	}
	return nil
}

// New returns a store in a bucket. It reads the configuration of the environment but sends nothing: a bucket that cannot be
// reached keeps nobody from starting.
func New(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("s3: options: %w", err)
	}
	clk := clock.Real()
	httpClient := awshttp.NewBuildableClient().
		WithReadTimeout(0). // it would end a long upload, in which the server is silent
		WithTransportOptions(func(t *http.Transport) { t.DialContext = watched(clk, o.Timeout, t.DialContext) })
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(httpClient)}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.AccessKey != "" {
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, o.SessionToken)))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("s3: options: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	return &Store{opts: o, clk: clk, single: maxSingle, client: client.NewFromConfig(cfg, o.apply)}, nil
}

func (o *Options) apply(c *client.Options) {
	if o.Endpoint != "" {
		c.BaseEndpoint = &o.Endpoint
	}
	c.UsePathStyle = o.PathStyle
	c.Retryer, c.RetryMaxAttempts = aws.NopRetryer{}, 0 // see retry
	c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
	if o.Checksums == checksumsRequired {
		c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
	// What is read is verified by SHA-256 where it counts.
	c.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	c.DisableLogOutputChecksumValidationSkipped = true
}

// watched returns a dialer whose connections fail when nothing has moved for the time given, in either direction.
func watched(clk clock.Clock, silence time.Duration, dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &watchedConn{c, clk, silence}, nil
	}
}

type watchedConn struct {
	net.Conn
	clk     clock.Clock
	silence time.Duration
}

// moved gives reads and writes, those that wait included, their time anew.
func (c *watchedConn) moved() error { return c.SetDeadline(c.clk.Now().Add(c.silence)) }

func (c *watchedConn) Read(p []byte) (int, error) {
	if err := c.moved(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *watchedConn) Write(p []byte) (int, error) {
	if err := c.moved(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
