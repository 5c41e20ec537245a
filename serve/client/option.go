package client

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// Option says more about a question. An option that has no meaning for a question is ignored.
type Option func(*options)

type options struct {
	consistency  apiv1.Consistency
	maxLag       int64
	minWatermark string
	position     query.Position
	asOf         string
	at           string
	partition    *int32
	partial      bool
	filter       string
	limit        int
	page         int32
	token        string
}

// defaultPage is how many rows a page has at most.
const defaultPage = 1000

func optionsOf(list []Option) *options {
	o := &options{page: defaultPage}
	for _, fn := range list {
		fn(o)
	}
	return o
}

func millis(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// Stale takes the state of a task that is still being restored as well, unless it lacks more than maxLag records of its
// changelogs; 0: any number. Meta.Stale and Meta.Lag say what the answer is.
func Stale(maxLag int64) Option {
	return func(o *options) { o.consistency, o.maxLag = apiv1.Consistency_STALE, maxLag }
}

// AtWatermark waits until the event time of the tasks has reached t.
func AtWatermark(t time.Time) Option {
	return func(o *options) { o.minWatermark = millis(t) }
}

// AtPosition waits until the answer reflects a position: that of an earlier answer, or that of a record. A Session does so
// for all reads.
func AtPosition(p query.Position) Option {
	return func(o *options) { o.position = o.position.Merge(p) }
}

// AsOf asks a versioned store for the values at a time. Default: the latest.
func AsOf(t time.Time) Option { return func(o *options) { o.asOf = millis(t) } }

// Containing asks for the windows or sessions that contain a moment, in place of bounds.
func Containing(t time.Time) Option { return func(o *options) { o.at = millis(t) } }

// InPartition asks one partition. Default: the one in which Kafka's partitioner puts the key, or all.
func InPartition(p int32) Option { return func(o *options) { o.partition = proto.Int32(p) } }

// AllowPartial returns what there is when partitions have no answer, and the error query.Partial, which names them, behind
// it. Default: only the error.
func AllowPartial() Option { return func(o *options) { o.partial = true } }

// Filter passes only the rows for which an expression over key, value, start, end and time is true, in the language of
// github.com/expr-lang/expr: value.amount > 10 && key startsWith "a". A watch tells a row that no longer passes as deleted.
func Filter(expression string) Option { return func(o *options) { o.filter = expression } }

// Limit returns at most n rows. Default: all.
func Limit(n int) Option { return func(o *options) { o.limit = n } }

// PageRows is how many rows are fetched at a time. Default: 1000.
func PageRows(n int) Option {
	return func(o *options) {
		if o.page = int32(min(n, 1<<30)); n <= 0 {
			o.page = defaultPage
		}
	}
}

// From makes a watch go on behind an event: its Token.
func From(token string) Option { return func(o *options) { o.token = token } }
