package engine

import (
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// chunk is what one fetch brought for one partition.
type chunk struct {
	round uint64 // seek round it was fetched in, see input.round
	recs  []*kgo.Record
	bytes int64
}

// queue holds the fetched chunks of one input partition: the poll loop puts, the worker takes.
type queue struct {
	mu     sync.Mutex
	chunks []chunk
	bytes  atomic.Int64 // of queued chunks and of the chunk the worker is working on
}

func (q *queue) put(c chunk) {
	q.mu.Lock()
	q.chunks = append(q.chunks, c)
	q.mu.Unlock()
	q.bytes.Add(c.bytes)
}

// take moves everything queued to the worker.
func (q *queue) take(into []chunk) []chunk {
	q.mu.Lock()
	into = append(into, q.chunks...)
	clear(q.chunks)
	q.chunks = q.chunks[:0]
	q.mu.Unlock()
	return into
}

// clear drops everything queued and returns its size.
func (q *queue) clear() int64 {
	q.mu.Lock()
	var n int64
	for i := range q.chunks {
		n += q.chunks[i].bytes
	}
	q.chunks = nil
	q.mu.Unlock()
	q.bytes.Add(-n)
	return n
}

// input is one partition of one input topic of a task.
type input struct {
	topic     string
	partition int32
	source    int // index in the sub-topology's sources
	task      *task
	internal  bool // a repartition topic of the app, with control records in it

	q queue
	// round counts the seeks. A chunk of an older round was fetched before the last one and is dropped.
	round atomic.Uint64
	// end is the largest last stable offset seen: below it the partition is known to have more records.
	end atomic.Int64

	// What the prober is told, see idle.go.
	arrivals atomic.Uint64 // fetches that have brought something
	before   atomic.Uint64 // arrivals as of the last reset
	rest     atomic.Int64  // position when the worker last found the queue empty
	wasIdle  atomic.Bool   // it was silent as of the last commit
	unseen   atomic.Bool   // no record was ever processed
	idle     atomic.Bool   // its task does not wait for it, as of the last show
	hidden   atomic.Bool   // an open transaction held records back when the brokers were last asked

	// The poll loop's.
	fetched int64       // next offset expected from a fetch
	fround  uint64      // round the poll loop has carried out
	verify  bool        // the first batch after a seek has not been seen
	live    bool        // the task runs, records are wanted
	paused  atomic.Bool // written by the poll loop, read by workers

	// The worker's.
	taken     []chunk
	next      int          // index of the head record in taken[0]
	position  int64        // next offset to process
	committed int64        // next offset to process as of the last commit
	reported  atomic.Int64 // committed, for the monitor
	waitSince int64        // since when an empty queue has held up the task, 0 = not
}

// head returns the record to be processed next, or nil.
func (in *input) head() *kgo.Record {
	for {
		if len(in.taken) > 0 {
			c := &in.taken[0]
			if c.round == in.round.Load() && in.next < len(c.recs) {
				return c.recs[in.next]
			}
			in.q.bytes.Add(-c.bytes)
			in.task.worker.e.queued.Add(-c.bytes)
			in.taken[0] = chunk{}
			in.taken = in.taken[1:]
			in.next = 0
			in.task.worker.e.source.drained(in)
			continue
		}
		in.taken = in.q.take(in.taken[:0])
		if len(in.taken) == 0 {
			in.rest.Store(in.position)
			return nil
		}
	}
}

// advance moves past the head record.
func (in *input) advance(r *kgo.Record) {
	in.position = r.Offset + 1
	in.taken[0].recs[in.next] = nil
	in.next++
}

// reset forgets what is queued and starts a new round.
func (in *input) reset(position int64) uint64 {
	round := in.round.Add(1)
	var n int64
	for i := range in.taken {
		n += in.taken[i].bytes
	}
	in.q.bytes.Add(-n)
	in.taken, in.next = nil, 0
	n += in.q.clear()
	in.task.worker.e.queued.Add(-n)
	in.position = position
	in.rest.Store(-1)
	in.before.Store(in.arrivals.Load())
	return round
}
