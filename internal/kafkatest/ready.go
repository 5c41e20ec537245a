package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/childproc"
)

// ready waits until the broker is usable. An open port says nothing: transactions work seconds
// later.
func (b *Broker) ready(ctx context.Context, p *childproc.Process) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.RetryTimeout(time.Second), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		err := probe(ctx, cl, b.opts.TransactionVersion)
		if err == nil {
			return nil
		}
		if errors.Is(err, errFeature) {
			return err
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the broker ended: %v", p.State())
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: last answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var errFeature = errors.New("wrong transaction.version")

// probe asks for everything that tests will ask for: the API versions, both coordinators, and a
// producer id, which makes the broker create the topic of transaction states.
func probe(ctx context.Context, cl *kgo.Client, transactionVersion int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(versions.ErrorCode); err != nil {
		return err
	}
	if err := checkFeature(versions, transactionVersion); err != nil {
		return err
	}
	for kind, key := range []string{"tidemark-ready-group", "tidemark-ready"} {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorType = int8(kind)
		find.CoordinatorKey = key
		find.CoordinatorKeys = []string{key}
		found, err := find.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		for _, c := range found.Coordinators {
			if err := kerr.ErrorForCode(c.ErrorCode); err != nil {
				return err
			}
		}
	}
	initialise := kmsg.NewPtrInitProducerIDRequest()
	initialise.TransactionalID = kmsg.StringPtr("tidemark-ready")
	initialise.TransactionTimeoutMillis = 10_000
	answer, err := initialise.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

func checkFeature(versions *kmsg.ApiVersionsResponse, want int) error {
	if want == 0 {
		return nil
	}
	for _, f := range versions.FinalizedFeatures {
		if f.Name == "transaction.version" && int(f.MaxVersionLevel) != want {
			return fmt.Errorf("%w: %d, want %d: the directory was formatted otherwise", errFeature, f.MaxVersionLevel, want)
		}
	}
	return nil
}

// LogTail returns the last lines of the broker's log.
func (b *Broker) LogTail(lines int) string {
	text, err := os.ReadFile(b.path("broker.log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}
