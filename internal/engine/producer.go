package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// producer is one incarnation of a worker's producer. A client that was fenced, timed out or whose
// transaction has an unknown outcome is not mended but replaced by a new incarnation with the same
// transactional id.
//
// The worker produces, the committer flushes and ends; they never do so at the same time, since the worker
// holds its output back while a transaction is ending.
type producer struct {
	client *kgo.Client
	txnID  string // empty for at-least-once
	writer uint64 // random, names this incarnation in progress records
	id     int64  // producer id, for the look at open transactions
	begun  bool   // the worker's: a transaction is open
	// opened is when the transaction that has not been heard of yet began, wall clock in ms, 0 without one.
	opened atomic.Int64
	now    func() time.Time

	promise func(*kgo.Record, error) // produced, made once and not per record

	mu       sync.Mutex
	firstErr error
	failed   *kgo.Record // the record of firstErr

	// indefinite is set when a connection was lost while EndTxn or TxnOffsetCommit was in the air. With
	// transaction.version 1 a resend inside the client may then commit the next transaction.
	indefinite atomic.Bool

	// disowned is set when the broker does not take the producer's id or epoch any more. Such a client is beyond
	// mending, even where it believes to have aborted: with transaction.version 1 it sends nothing for a
	// transaction that no partition has joined.
	disowned atomic.Bool

	// clean holds the partitions that were seen without an open transaction of this producer since it was
	// initialised. Guarded by cleanMu.
	cleanMu sync.Mutex
	clean   map[topicPartition]bool
}

// newProducer makes and initialises a producer. Initialising ends whatever an earlier incarnation with the
// same id left open.
func (e *Engine) newProducer(ctx context.Context, txnID string) (*producer, error) {
	p := &producer{txnID: txnID, writer: e.random(), now: e.cfg.Clock.Now, clean: make(map[topicPartition]bool)}
	p.promise = p.produced
	opts := []kgo.Opt{kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression())} // a default only
	opts = append(opts, e.cfg.Client...)
	opts = append(opts,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchMaxBytesFn(e.batchBytes),
		kgo.MaxBufferedRecords(1<<20),
		kgo.MaxBufferedBytes(128<<20),
		kgo.UnknownTopicRetries(10),
		kgo.WithHooks(p),
	)
	if txnID != "" && !e.tv2 {
		// Version 5 and up of TxnOffsetCommit would be accepted and, after the end of the transaction, open
		// the next one. The cap makes the client run the whole older protocol.
		v := kversion.Stable()
		v.SetMaxKeyVersion(kmsg.TxnOffsetCommit.Int16(), 4)
		opts = append(opts, kgo.MaxVersions(v))
	}
	if txnID != "" {
		opts = append(opts,
			kgo.TransactionalID(txnID),
			kgo.TransactionTimeout(e.cfg.TransactionTimeout),
			kgo.ConcurrentTransactionsBackoff(2*time.Millisecond),
		)
	}
	// The client changes the codecs of a compression option in place, and producers are made at the same time.
	e.clientMu.Lock()
	cl, err := kgo.NewClient(opts...)
	e.clientMu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("tidemark: producer: %w", err)
	}
	p.client = cl
	if txnID == "" {
		return p, nil
	}
	if p.id, _, err = cl.ProducerID(ctx); err != nil {
		cl.Close()
		if errors.Is(err, kerr.TransactionalIDAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
			return nil, fmt.Errorf("tidemark: %w: %w; grant WRITE and DESCRIBE on transactional ids with prefix %s", ErrNotAuthorized, err, e.cfg.App)
		}
		return nil, fmt.Errorf("tidemark: initialise producer %s: %w", txnID, err)
	}
	return p, nil
}

// batchBytes is the largest batch a topic takes, hence the largest record: a smaller bound would refuse records
// that the topic accepts, a larger one makes batches that it does not.
func (e *Engine) batchBytes(topic string) int32 {
	n, ok := e.maxBytes[topic]
	if !ok {
		return 1_000_012 // the client's default
	}
	return int32(min(max(n, 512), 1<<30))
}

// rebuildProducer replaces a worker's producer, for as long as it takes.
func (e *Engine) rebuildProducer(ctx context.Context, old *producer) (*producer, error) {
	if old != nil {
		old.client.Close()
	}
	return e.obtainProducer(ctx, old.txnID)
}

// obtainProducer makes a producer, however long the broker is away.
func (e *Engine) obtainProducer(ctx context.Context, txnID string) (*producer, error) {
	backoff := 5 * time.Millisecond
	for {
		ictx, cancel := context.WithTimeout(ctx, e.cfg.TransactionTimeout+20*time.Second)
		p, err := e.newProducer(ictx, txnID)
		cancel()
		if err == nil || errors.Is(err, ErrNotAuthorized) {
			return p, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-e.cfg.Clock.After(backoff):
			backoff = min(2*backoff, time.Second)
		}
	}
}

// begin opens a transaction.
func (p *producer) begin() error {
	if p.begun {
		return nil
	}
	if p.txnID != "" {
		if err := p.client.BeginTransaction(); err != nil {
			return err
		}
		p.opened.Store(p.now().UnixMilli())
	}
	p.begun = true
	return nil
}

// produced is the promise of every record: it keeps the first failure of the transaction.
func (p *producer) produced(r *kgo.Record, err error) {
	if err == nil {
		return
	}
	for _, k := range []error{kerr.InvalidProducerIDMapping, kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.UnknownProducerID, kerr.InvalidTxnState} {
		if errors.Is(err, k) {
			p.disowned.Store(true)
		}
	}
	p.mu.Lock()
	if p.firstErr == nil {
		p.firstErr, p.failed = err, r
	}
	p.mu.Unlock()
}

// produceError returns the first failure since the last call.
func (p *producer) produceError() (*kgo.Record, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err, r := p.firstErr, p.failed
	p.firstErr, p.failed = nil, nil
	return r, err
}

// OnBrokerE2E watches for connections lost under requests whose outcome matters.
func (p *producer) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if e2e.Err() == nil {
		return
	}
	if key == kmsg.EndTxn.Int16() || key == kmsg.TxnOffsetCommit.Int16() {
		p.indefinite.Store(true)
	}
}

// markClean notes partitions that hold no open transaction of this incarnation's id.
func (p *producer) markClean(tps []topicPartition) {
	p.cleanMu.Lock()
	for _, tp := range tps {
		p.clean[tp] = true
	}
	p.cleanMu.Unlock()
}

// unchecked returns those of tps that have not been seen clean yet.
func (p *producer) unchecked(tps []topicPartition) []topicPartition {
	p.cleanMu.Lock()
	defer p.cleanMu.Unlock()
	var out []topicPartition
	for _, tp := range tps {
		if !p.clean[tp] {
			out = append(out, tp)
		}
	}
	return out
}
