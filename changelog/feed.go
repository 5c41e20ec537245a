package changelog

import (
	"context"
	"fmt"
	"time"
)

// feed fetches one partition from start to target and sends the answers in order. It
// runs on a goroutine of its own, so that the next answer is fetched and decoded while
// the sink works on the last. It returns when the target is passed, with an error, or
// when ctx ends.
type feed struct {
	r    *Reader
	i    int
	part Partition
	out  chan<- answer

	pos     int64
	id      [16]byte
	silence time.Time // when the last answer came
	unknown time.Time // since when the topic is unknown; zero: it is known
	short   time.Time // since when the log ends below the target; zero: it does not
	try     int       // fetches in a row that moved nothing
}

func (f *feed) run(ctx context.Context) error {
	f.pos, f.id = f.part.From, f.part.TopicID
	f.silence = f.r.cfg.Clock.Now()
	if f.pos == FromStart {
		start, err := ListStarts(ctx, f.r.cl, []TopicPartition{{f.part.Topic, f.part.Partition}})
		if err != nil {
			return err
		}
		f.pos = start[TopicPartition{f.part.Topic, f.part.Partition}]
	}
	for {
		done, err := f.step(ctx)
		if done || err != nil {
			return err
		}
	}
}

// step is one fetch and what follows from it.
func (f *feed) step(ctx context.Context) (done bool, err error) {
	var memory *buffers
	select {
	case memory = <-f.r.slots:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	a, err := f.ask(ctx, memory)
	if err != nil {
		f.r.release(memory)
		return false, f.failed(ctx, err)
	}
	now := f.r.cfg.Clock.Now()
	f.silence, f.unknown = now, time.Time{}
	// An answer without a batch says that there is none below the last stable offset it
	// names. With that at the target, what is left below the target was compacted away.
	// Markers and aborted records are batches: they have moved the position before.
	if a.empty && a.stable >= f.part.Target {
		a.next = max(f.pos, f.part.Target)
	}
	moved := a.next > f.pos
	f.pos = a.next
	a.i = f.i
	done = f.pos >= f.part.Target && a.stable >= f.part.Target
	end := a.end
	select {
	case f.out <- a: // the receiver releases the memory
	case <-ctx.Done():
		f.r.release(memory)
		return false, context.Cause(ctx)
	}
	if done {
		return true, nil
	}
	if err := f.shortLog(now, end); err != nil {
		return false, err
	}
	if moved {
		f.try = 0
		return false, nil
	}
	f.try++
	return false, pause(ctx, f.r.cfg.Clock, min(backoff(f.try-1), f.r.cfg.MaxWait))
}

// ask sends one fetch to the leader of the partition.
func (f *feed) ask(ctx context.Context, memory *buffers) (answer, error) {
	l, id, err := f.r.leaderOf(ctx, f.part.Topic, f.part.Partition)
	if err != nil {
		return answer{}, err
	}
	switch {
	case f.id == [16]byte{}:
		f.id = id
	case id != f.id:
		// No waiting: an id is never used twice.
		return answer{}, &TopicGoneError{Topic: f.part.Topic, Was: f.id, Is: id}
	}
	return f.r.fetch(ctx, f.part.Topic, id, f.part.Partition, l, f.pos, memory)
}

// failed decides on a failed fetch: nil to go on.
func (f *feed) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := err.(*TopicGoneError); ok {
		return err
	}
	now := f.r.cfg.Clock.Now()
	switch judge(err) {
	case giveUp:
		return readError(f.part.Topic, f.part.Partition, f.pos, err)
	case outOfRange:
		if err := f.r.rangeError(ctx, f.part.Topic, f.part.Partition, f.pos); err != nil {
			return err
		}
		f.r.forget(f.part.Topic)
	case gone:
		f.r.forget(f.part.Topic)
		if f.unknown.IsZero() {
			f.unknown = now
		}
		if now.Sub(f.unknown) >= f.r.cfg.Patience {
			return &TopicGoneError{Topic: f.part.Topic, Was: f.id}
		}
	case newLeader:
		f.r.forget(f.part.Topic)
	case retry:
	}
	if now.Sub(f.silence) >= f.r.cfg.Outage {
		return readError(f.part.Topic, f.part.Partition, f.pos, fmt.Errorf("no answer for %v: %w", f.r.cfg.Outage, err))
	}
	f.try++
	return pause(ctx, f.r.cfg.Clock, backoff(f.try-1))
}

// shortLog reports a log that ends below the target for longer than a new leader
// needs to learn its high watermark.
func (f *feed) shortLog(now time.Time, end int64) error {
	if end >= f.part.Target {
		f.short = time.Time{}
		return nil
	}
	if f.short.IsZero() {
		f.short = now
	}
	if now.Sub(f.short) < f.r.cfg.Patience {
		return nil
	}
	e := &RangeError{Topic: f.part.Topic, Partition: f.part.Partition, Position: f.part.Target, End: end, Err: ErrBeyondEnd}
	return e
}
