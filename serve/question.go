package serve

import (
	"encoding/binary"
	"hash/fnv"
	"math"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// question is a question for rows, understood.
type question struct {
	shape
	method string
	page   query.Page
	// at, if hasAt, keeps the windows that contain it.
	at    int64
	hasAt bool
	// hash is that of what was asked: a page token is good for the same question only.
	hash uint64
}

// kinds of stores that answer a method; Scan takes any.
var kinds = map[string]query.Kind{
	"Windows": query.Window, "Sessions": query.Session, "History": query.Versioned, "Values": query.List,
}

// question reads a request for rows.
func (s *Server) question(st *query.Store, c *call, method string, req *apiv1.RowsRequest) (*question, error) {
	q := &question{shape: shape{st: st, raw: c.raw, fields: c.fields}, method: method}
	if kind, ok := kinds[method]; ok && kind != st.Kind {
		return nil, query.Errorf(query.WrongKind, "store %s is one of kind %s, %s is for those of kind %s", st.ID, st.Kind, method, kind)
	}
	key, keys, err := s.bounds(st, req, given{
		req.Key != nil, req.RawKey != nil, req.FromKey != nil, req.ToKey != nil, req.Prefix != nil,
		req.RawFromKey != nil, req.RawToKey != nil, req.RawPrefix != nil,
	})
	if err != nil {
		return nil, err
	}
	if key == nil && (method == "History" || method == "Values") {
		return nil, query.Errorf(query.InvalidRequest, "a key is missing: key, json_key or raw_key")
	}
	q.page.Key, q.page.Range = key, keys
	if err := q.times(req); err != nil {
		return nil, err
	}
	if q.filter, err = parseFilter(req.Filter); err != nil {
		return nil, err
	}
	q.hash = q.sum(req.Filter)
	return q, nil
}

// times reads the bounds in time.
func (q *question) times(req *apiv1.RowsRequest) error {
	from, hasFrom, err := parseTime("from", req.From)
	if err != nil {
		return err
	}
	to, hasTo, err := parseTime("to", req.To)
	if err != nil {
		return err
	}
	at, hasAt, err := parseTime("at", req.At)
	if err != nil {
		return err
	}
	p := &q.page
	p.HasTime = hasFrom || hasTo || hasAt
	p.From, p.To = math.MinInt64, math.MaxInt64
	if hasFrom {
		p.From = from
	}
	if hasTo {
		p.To = to
	}
	switch {
	case hasAt && (hasFrom || hasTo):
		return query.Errorf(query.InvalidRequest, "at excludes from and to")
	case p.From > p.To:
		return query.Errorf(query.InvalidRequest, "from is later than to")
	case p.HasTime && (q.st.Kind == query.KeyValue || q.st.Kind == query.Expiring || q.st.Kind == query.List):
		return query.Errorf(query.WrongKind, "store %s is one of kind %s: its rows have no time to ask for", q.st.ID, q.st.Kind)
	case hasAt && q.st.Sliced != nil: // their windows have one length
		end := q.st.Sliced.First(at)
		p.From, p.To = at-(end-q.st.StartOf(end))+1, at
	case hasAt && q.st.Kind == query.Window:
		p.To, q.at, q.hasAt = at, at, true
	case hasAt:
		p.From, p.To = at, at
	}
	return nil
}

// sum hashes what was asked. How new, how many, how shown, and which partition are not part of it: a page token carries
// what it needs of them.
func (q *question) sum(filter string) uint64 {
	h := fnv.New64a()
	var n [8]byte
	part := func(b []byte) {
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		_, _ = h.Write(n[:])
		_, _ = h.Write(b)
	}
	number := func(v int64) {
		binary.BigEndian.PutUint64(n[:], uint64(v))
		_, _ = h.Write(n[:])
	}
	present := func(b []byte) {
		if b == nil {
			number(0)
			return
		}
		number(1)
		part(b)
	}
	part([]byte(q.method))
	part([]byte(q.st.ID))
	present(q.page.Key)
	present(q.page.Range.From)
	present(q.page.Range.To)
	number(q.page.From)
	number(q.page.To)
	if q.hasAt {
		number(1)
	}
	part([]byte(filter))
	return h.Sum64()
}
