package serve

import (
	"context"

	"github.com/tidemark/tidemark/processor"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// store finds a store by its name.
func (s *Server) store(id string) (*query.Store, error) {
	for _, st := range s.source.Stores() {
		if st.ID == id {
			return st, nil
		}
	}
	return nil, query.Errorf(query.StoreNotFound, "there is no store %.100q", id)
}

// counted is store, and waits until the app knows how many partitions the store has.
func (s *Server) counted(ctx context.Context, id string) (*query.Store, error) {
	pause := firstPause
	for {
		st, err := s.store(id)
		if err != nil || st.Partitions > 0 {
			return st, err
		}
		if !s.pause(ctx, &pause) {
			return nil, &query.Error{Reason: query.NoOwner, Message: "the app does not know yet how many partitions the store has", Store: id}
		}
	}
}

// keyed are the requests about one key, which comes in one of three forms.
type keyed interface {
	GetKey() string
	GetJsonKey() *apiv1.Datum
	GetRawKey() []byte
}

// key returns the encoded key of a request; has says which forms are there.
func (s *Server) key(st *query.Store, r keyed, text, raw bool) ([]byte, error) {
	n := 0
	var key []byte
	var err error
	if text {
		n++
		key, err = s.textKey(st, r.GetKey())
	}
	if d := r.GetJsonKey(); d != nil {
		n++
		key, err = s.datumKey(st, d)
	}
	if raw {
		n++
		key, err = s.rawKey(r.GetRawKey())
	}
	if n > 1 {
		return nil, query.Errorf(query.InvalidRequest, "of key, json_key and raw_key only one can be given")
	}
	return key, err
}

func (s *Server) textKey(st *query.Store, text string) ([]byte, error) {
	key, err := st.Key.ParseText([]byte{}, text)
	return s.checkKey(st, key, err)
}

func (s *Server) datumKey(st *query.Store, d *apiv1.Datum) ([]byte, error) {
	if raw, ok := d.Form.(*apiv1.Datum_Raw); ok {
		return s.rawKey(raw.Raw)
	}
	key, err := st.Key.Parse([]byte{}, []byte(d.GetJson()))
	return s.checkKey(st, key, err)
}

func (s *Server) checkKey(st *query.Store, key []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, &query.Error{Reason: query.KeyMalformed, Message: "the key is none of store " + st.ID, Store: st.ID, Err: err}
	}
	return s.rawKey(key)
}

func (s *Server) rawKey(key []byte) ([]byte, error) {
	if len(key) > s.cfg.Limits.Key {
		return nil, query.Errorf(query.TooLarge, "a key of %d bytes exceeds the limit of %d", len(key), s.cfg.Limits.Key)
	}
	if key == nil {
		key = []byte{}
	}
	return key, nil
}

// partition returns the task that holds a key: that of Kafka's partitioner, unless the request names one.
func partition(st *query.Store, key []byte, named *int32) (query.Task, error) {
	if named == nil {
		return query.Task{Sub: st.Sub, Partition: processor.PartitionOf(key, st.Partitions)}, nil
	}
	if *named < 0 || *named >= st.Partitions {
		return query.Task{}, query.Errorf(query.InvalidRequest, "store %s has partitions 0 to %d", st.ID, st.Partitions-1)
	}
	return query.Task{Sub: st.Sub, Partition: *named}, nil
}
