package processor

import "github.com/tidemark/tidemark/window"

// Op is the index of an operator among those of its task.
type Op int32

// Context is what a task knows about the record in hand. User functions get it in the long forms of operators; it is
// valid until they return, and only on their goroutine.
type Context struct {
	env       Env
	operators []string // names by Op
	out       Output

	rec       *Record
	time      int64
	key       []byte // encoded key; nil is null
	keyShared bool   // key lies in a buffer that is reused: copy before it is sent
	value     []byte // encoded value, if raw
	raw       bool   // value holds the bytes of the typed value at this point
	headers   []Header
	op        Op // the operator whose user code runs, for panics and Operator

	task   *Task
	origin int64     // watermark of the record's own source partition when it was read
	change window.Op // what the record does to results given before; 0 for a plain one

	observed   any  // the typed value, for generators that look at it
	unobserved bool // the record's time does not move its source's generator

	slab     slab
	effects  uint64
	dropped  uint64
	counters []Counters // by Op
	emitErr  error      // of what is downstream of the custom processor that runs
	broken   error      // of the state or the output; wins over whatever user code makes of it
}

// Topic returns the topic of the input record; it is empty while coalesced results are emitted at a commit, and behind
// a repartition it is the name of the internal topic.
func (c *Context) Topic() string { return c.rec.Topic }

// Partition returns the partition of the input record, which is the task's.
func (c *Context) Partition() int32 { return c.rec.Partition }

// Offset returns the offset of the input record, or -1 while coalesced results are emitted at a commit.
func (c *Context) Offset() int64 { return c.rec.Offset }

// Timestamp returns the time of the record at this point in ms since the epoch: that of the input record or, behind an
// aggregate, that of its result.
func (c *Context) Timestamp() int64 { return c.time }

// KeyBytes returns the encoded key at this point, nil if it is null. It must not be changed and is valid until the
// function returns.
func (c *Context) KeyBytes() []byte { return c.key }

// Headers returns the headers at this point. The slice must not be changed.
func (c *Context) Headers() []Header { return c.headers }

// AddHeader adds a header behind the present ones, for this operator's output and all that is downstream of it.
func (c *Context) AddHeader(key string, value []byte) {
	c.headers = append(c.headers[:len(c.headers):len(c.headers)], Header{Key: key, Value: value})
}

// Operator returns the name of the operator that runs, as Describe prints it.
func (c *Context) Operator() string { return c.operators[c.op] }

// Task returns the id of the task.
func (c *Context) Task() TaskID { return c.env.Task }

// Now returns the wall clock in ms since the epoch. A result that depends on it is not repeatable.
func (c *Context) Now() int64 {
	if c.env.Now == nil {
		return 0
	}
	return c.env.Now()
}

// Touch counts an effect that neither the state nor the output sees: a value that is changed in place.
func (c *Context) Touch() { c.effects++ }
