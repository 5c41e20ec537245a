package serve

import (
	"bytes"
	"context"

	"github.com/tidemark/tidemark/query"
)

// bounded are the requests about a range of keys.
type bounded interface {
	keyed
	GetFromKey() string
	GetToKey() string
	GetPrefix() string
	GetRawFromKey() []byte
	GetRawToKey() []byte
	GetRawPrefix() []byte
}

// given says which of the fields with presence a request has.
type given struct{ key, rawKey, from, to, prefix, rawFrom, rawTo, rawPrefix bool }

// bounds returns the key, or else the range of keys, of a request.
func (s *Server) bounds(st *query.Store, r bounded, g given) (key []byte, keys query.Range, err error) {
	if key, err = s.key(st, r, g.key, g.rawKey); err != nil {
		return nil, keys, err
	}
	ranged := g.from || g.to || g.rawFrom || g.rawTo
	prefixed := g.prefix || g.rawPrefix
	if key != nil && (ranged || prefixed) || ranged && prefixed || g.from && g.rawFrom || g.to && g.rawTo || g.prefix && g.rawPrefix {
		return nil, keys, query.Errorf(query.InvalidRequest, "a key, a range and a prefix exclude each other, and each has one form")
	}
	parse := func(text, raw bool, t string, b []byte) ([]byte, error) {
		switch {
		case text:
			return s.textKey(st, t)
		case raw:
			return s.rawKey(b)
		}
		return nil, nil
	}
	if prefixed {
		if schema := st.Key.Schema(); g.prefix && schema != "string" && schema != "bytes" {
			return nil, keys, query.Errorf(query.KeyMalformed, "keys of store %s are of type %s, which has no prefixes: give raw_prefix", st.ID, schema)
		}
		p, err := parse(g.prefix, g.rawPrefix, r.GetPrefix(), r.GetRawPrefix())
		return nil, query.Prefix(p), err
	}
	if keys.From, err = parse(g.from, g.rawFrom, r.GetFromKey(), r.GetRawFromKey()); err != nil {
		return nil, keys, err
	}
	if keys.To, err = parse(g.to, g.rawTo, r.GetToKey(), r.GetRawToKey()); err != nil {
		return nil, keys, err
	}
	if keys.To != nil && bytes.Compare(keys.From, keys.To) > 0 {
		return nil, keys, query.Errorf(query.InvalidRequest, "the range ends before it begins, in the order of encoded keys")
	}
	return key, keys, nil
}

// partitions returns the partitions a question is about, and whether it is about one by its nature.
func (s *Server) partitions(st *query.Store, key []byte, named *int32) (list []int32, one bool, err error) {
	if key != nil || named != nil {
		t, err := partition(st, key, named)
		return []int32{t.Partition}, true, err
	}
	for p := range st.Partitions {
		list = append(list, p)
	}
	return list, false, nil
}

// share bounds a part of a question, so that a partition without an answer leaves time for the others.
func (s *Server) share(ctx context.Context, partial bool) (context.Context, context.CancelFunc) {
	at, ok := ctx.Deadline()
	if !ok || !partial {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, at.Sub(s.cfg.Clock.Now())/2)
}
