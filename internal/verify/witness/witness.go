package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark/tidemark/internal/verify/check"
	"github.com/tidemark/tidemark/internal/verify/workload"
)

// Witness follows a run and keeps its checkers.
type Witness struct {
	app    string
	topics workload.Topics
	loader *Loader
	in     *follower
	out    *follower

	seq    *check.Seq
	sum    *check.Sum
	bank   *check.Bank
	events *check.Events
	hashes map[topicPartition][]uint64 // of the inputs, by offset
	broken check.Report                // of the inputs themselves
}

// New returns a witness of the app that processes what the loader produces.
func New(client []kgo.Opt, app string, t workload.Topics, l *Loader) (*Witness, error) {
	w := &Witness{
		app: app, topics: t, loader: l,
		seq: check.NewSeq(), sum: check.NewSum(), bank: check.NewBank(), events: check.NewEvents(),
		hashes: make(map[topicPartition][]uint64),
	}
	var err error
	if w.in, err = newFollower(client, t.Inputs(), w.input); err != nil {
		return nil, err
	}
	if w.out, err = newFollower(client, t.Outputs(), w.output); err != nil {
		w.in.close()
		return nil, err
	}
	return w, nil
}

// Close closes the clients.
func (w *Witness) Close() {
	w.in.close()
	w.out.close()
}

func record(r *kgo.Record) check.Record {
	out := check.Record{Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, check.Header(h))
	}
	return out
}

func (w *Witness) input(r *kgo.Record) {
	tp := topicPartition{r.Topic, r.Partition}
	if r.Offset != int64(len(w.hashes[tp])) {
		w.broken.Wrongly("input %s/%d: offset %d follows %d", r.Topic, r.Partition, r.Offset, len(w.hashes[tp])-1)
	}
	w.hashes[tp] = append(w.hashes[tp], hashOf(w.loader.seed, r.Key, r.Value))
	switch r.Topic {
	case w.topics.SeqIn:
		w.seq.Input(record(r))
	case w.topics.SumIn:
		w.sum.Input(record(r))
	case w.topics.BankIn:
		w.bank.Input(record(r))
	case w.topics.EventsIn:
		w.events.Input(record(r))
	}
}

func (w *Witness) output(r *kgo.Record) {
	switch r.Topic {
	case w.topics.SeqOut:
		w.seq.Output(record(r))
	case w.topics.SumOut:
		w.sum.Output(record(r))
	case w.topics.BankOut:
		w.bank.Output(record(r))
	case w.topics.OnceOut:
		w.events.Once(record(r))
	case w.topics.PanesOut:
		w.events.Pane(record(r))
	case w.topics.Late:
		w.events.Late(record(r))
	case w.topics.Dead:
		w.events.Dead(record(r))
	}
}

// CatchUp reads everything that is committed now.
func (w *Witness) CatchUp(ctx context.Context) error {
	// Ends of the outputs first: what produced them is in the inputs by then.
	outs, err := w.out.ends(ctx)
	if err != nil {
		return err
	}
	ins, err := w.in.ends(ctx)
	if err != nil {
		return err
	}
	if err := w.in.upTo(ctx, ins); err != nil {
		return err
	}
	return w.out.upTo(ctx, outs)
}

// Now reports what has been found so far.
func (w *Witness) Now() *check.Report {
	return w.report(w.seq.Now, w.sum.Now, w.bank.Now, w.events.Now)
}

// Done reports, once all inputs must have had their effect. What windows hold is judged when the inputs have ended, see
// Loader.End.
func (w *Witness) Done() *check.Report {
	r := w.report(w.seq.Done, w.sum.Done, w.bank.Done, w.events.Done)
	w.loader.mu.Lock()
	defer w.loader.mu.Unlock()
	for _, a := range w.loader.acked {
		if h := w.hashes[topicPartition{a.topic, a.partition}]; a.offset >= int64(len(h)) || h[a.offset] != a.hash {
			r.Wrongly("input %s/%d offset %d was acknowledged and is not in the log", a.topic, a.partition, a.offset)
		}
	}
	return r
}

func (w *Witness) report(checkers ...func() *check.Report) *check.Report {
	r := new(check.Report)
	r.Add(&w.broken)
	for _, c := range checkers {
		r.Add(c())
	}
	return r
}

// Summary says what the workload events had in it.
func (w *Witness) Summary() string { return w.events.Summary() }

// Panes returns how many panes of windows were seen.
func (w *Witness) Panes() int { return w.events.Panes() }

// Quiet says whether nothing is in flight: no transaction is open on any topic of the app, and the group's
// offsets are the ends of the inputs. The reason tells what is.
func (w *Witness) Quiet(ctx context.Context) (reason string, err error) {
	adm := w.in.adm
	names, err := adm.ListTopics(ctx)
	if err != nil {
		return "", fmt.Errorf("witness: list topics: %w", err)
	}
	topics := w.topics.All()
	for _, t := range names.Names() {
		if strings.HasPrefix(t, w.app+"-") && !slices.Contains(topics, t) {
			topics = append(topics, t)
		}
	}
	stable, err := ends(adm.ListCommittedOffsets(ctx, topics...))
	if err != nil {
		return "", err
	}
	high, err := ends(adm.ListEndOffsets(ctx, topics...))
	if err != nil {
		return "", err
	}
	for tp, end := range high {
		if stable[tp] < end {
			return fmt.Sprintf("%s/%d: last stable offset %d, high watermark %d", tp.topic, tp.partition, stable[tp], end), nil
		}
	}
	offsets, err := adm.FetchOffsets(ctx, w.app)
	if err != nil {
		return "", fmt.Errorf("witness: fetch offsets: %w", err)
	}
	for _, t := range w.topics.Inputs() {
		for tp, end := range high {
			if tp.topic != t || end == 0 {
				continue
			}
			if o, ok := offsets.Lookup(t, tp.partition); !ok || o.At < end {
				return fmt.Sprintf("%s/%d: committed to %d, ends at %d", t, tp.partition, o.At, end), nil
			}
		}
	}
	return "", nil
}

// Evict removes a member from the app's group.
func (w *Witness) Evict(ctx context.Context, member string) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = w.app, member
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = member
	req.Members = append(req.Members, m)
	if _, err := req.RequestWith(ctx, w.in.cl); err != nil {
		return fmt.Errorf("witness: evict %s: %w", member, err)
	}
	return nil
}

// ErrNotQuiet says that the app did not come to rest in time.
var ErrNotQuiet = errors.New("witness: the app does not come to rest")

// Settle waits until the app has processed everything and checks the sum over all accounts. It returns the
// report of that moment; with ctx at its end it returns what is missing as lost, and ErrNotQuiet.
func (w *Witness) Settle(ctx context.Context) (*check.Report, error) {
	last := "nothing was seen"
	for {
		reason, err := w.Quiet(ctx)
		if reason != "" {
			last = reason
		}
		if err != nil && ctx.Err() == nil {
			last = err.Error()
		}
		if err == nil {
			err = w.CatchUp(ctx)
		}
		if err == nil && reason == "" {
			legs, events := w.bank.Open(), w.events.Open()
			if legs+events == 0 {
				return w.Done(), nil
			}
			last = fmt.Sprintf("%d legs are not booked, %d events or windows are not done", legs, events)
		}
		if bad := w.Now(); !bad.OK() && bad.Duplicated+bad.Wrong > 0 {
			return bad, nil // it will not get better
		}
		select {
		case <-ctx.Done():
			return w.Done(), fmt.Errorf("%w: %s: %w", ErrNotQuiet, last, errors.Join(err, context.Cause(ctx)))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// CreateTopics makes the topics of a run.
func CreateTopics(ctx context.Context, client []kgo.Opt, t workload.Topics, partitions int32) error {
	cl, err := kgo.NewClient(client...)
	if err != nil {
		return fmt.Errorf("witness: create topics: %w", err)
	}
	defer cl.Close()
	// Events and what becomes of them have times long past, which is no reason to delete them.
	forever := "-1"
	resp, err := kadm.NewClient(cl).CreateTopics(ctx, partitions, 1, map[string]*string{"retention.ms": &forever}, t.All()...)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return fmt.Errorf("witness: create topics: %w", err)
	}
	return nil
}

// Producers returns the ids of all transactional producers that the broker knows.
func (w *Witness) Producers(ctx context.Context) (map[int64]bool, error) {
	l, err := w.in.adm.ListTransactions(ctx, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("witness: list transactions: %w", err)
	}
	out := make(map[int64]bool)
	for _, t := range l {
		out[t.ProducerID] = true
	}
	return out, nil
}
