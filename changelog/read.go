package changelog

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Read reads every partition from From until its position has reached Target and
// the last stable offset has passed it, and returns the positions reached, in the
// order of parts: exactly Target, or From where that lies above. Records at Target and
// beyond are not handed out. Records of aborted transactions and control records are
// never handed out; they only move the position.
//
// sink gets every record with the index of its partition, on the caller's goroutine,
// in offset order within a partition. The record, its key, its value and its headers
// are valid only during the call. An error of the sink ends the read and is returned
// as it is. progress (nil allowed) is called on the same goroutine after every answer.
//
// A target that the last stable offset does not pass keeps the read waiting until ctx
// ends: a transaction is open there, and the caller knows whose it may be. Errors:
// *RangeError, *TopicGoneError, the cause of ctx, or the broker's reason; the positions
// returned beside an error are those up to which the sink has been called (From, or
// FromStart, where it has not).
func (r *Reader) Read(ctx context.Context, parts []Partition, sink func(i int, rec *kgo.Record) error, progress func(i int, pos, target int64)) ([]int64, error) {
	batch := func(i int, recs []*kgo.Record) (int, error) {
		for n, rec := range recs {
			if err := sink(i, rec); err != nil {
				return n, err
			}
		}
		return len(recs), nil
	}
	return r.ReadBatches(ctx, parts, batch, progress)
}

// ReadBatches is Read with a sink that takes all records of an answer at once. The
// sink returns how many of them it has applied, which matters only beside an error.
// The slice, too, is valid only during the call.
func (r *Reader) ReadBatches(ctx context.Context, parts []Partition, sink func(i int, recs []*kgo.Record) (int, error), progress func(i int, pos, target int64)) ([]int64, error) {
	r.begin()
	defer r.end()
	positions := make([]int64, len(parts))
	for i, p := range parts {
		positions[i] = p.From
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answers := make(chan answer)
	var feeds sync.WaitGroup
	for i, p := range parts {
		feeds.Go(func() {
			f := feed{r: r, i: i, part: p, out: answers}
			if err := f.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	go func() { // ends with the feeds, before the loop below does
		feeds.Wait()
		close(answers)
	}()
	for a := range answers {
		if ctx.Err() == nil {
			if err := deliver(a, parts[a.i], positions, sink); err != nil {
				cancel(err)
			} else if progress != nil {
				progress(a.i, positions[a.i], parts[a.i].Target)
			}
		}
		r.release(a.memory)
	}
	return positions, context.Cause(ctx)
}

// deliver hands the records of an answer to the sink and moves the position.
func deliver(a answer, p Partition, positions []int64, sink func(int, []*kgo.Record) (int, error)) error {
	recs := a.records
	for len(recs) > 0 && recs[len(recs)-1].Offset >= p.Target {
		recs = recs[:len(recs)-1]
	}
	if len(recs) > 0 {
		n, err := sink(a.i, recs)
		if err != nil {
			if n > 0 {
				positions[a.i] = recs[n-1].Offset + 1
			}
			return err
		}
	}
	positions[a.i] = min(a.next, max(p.From, p.Target))
	return nil
}

// begin and end count the reads: the memory of the answers is kept only while there
// is one.
func (r *Reader) begin() {
	r.mu.Lock()
	r.active++
	r.mu.Unlock()
}

func (r *Reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active--; r.active > 0 {
		return
	}
	for range len(r.slots) {
		m := <-r.slots
		m.drop()
		r.slots <- m
	}
}

func (r *Reader) release(m *buffers) {
	m.reset()
	r.slots <- m
}
