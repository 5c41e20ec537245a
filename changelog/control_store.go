package changelog

import (
	"fmt"
	"strings"

	"github.com/tidemark/tidemark/internal/wire"
)

const keyStore = "store/"

// StoreRecord is what the control topic records of a store: what a later topology that has a store of the same
// id must keep. Two records are equal when they compare equal.
type StoreRecord struct {
	ID          string
	Kind        string // as store.Kind prints it
	KeySchema   string // of the codec of its keys
	ValueSchema string // of the codec of its values
	Changelog   bool   // whether it has a changelog topic
}

// StoreRecordOf returns the record of one store.
//
//	+---------+------+------------+--------------+---------------+--------+
//	| version | kind | key schema | value schema | uv changelog  | crc32c |
//	| 1 byte  | str  | str        | str          | 0 or 1        | 4      |
//	+---------+------+------------+--------------+---------------+--------+
func StoreRecordOf(s StoreRecord) ControlRecord {
	b := []byte{ControlVersion}
	b = wire.AppendString(b, s.Kind)
	b = wire.AppendString(b, s.KeySchema)
	b = wire.AppendString(b, s.ValueSchema)
	var changelog uint64
	if s.Changelog {
		changelog = 1
	}
	b = wire.AppendUvarint(b, changelog)
	return ControlRecord{keyStore + s.ID, sealed(b)}
}

// applyStore folds a record of a store.
func (c *ControlState) applyStore(key string, value []byte) error {
	id := strings.TrimPrefix(key, keyStore)
	if value == nil {
		delete(c.Stores, id)
		return nil
	}
	r, err := openControl(value)
	if err != nil {
		return err
	}
	s := StoreRecord{ID: id, Kind: r.String(), KeySchema: r.String(), ValueSchema: r.String()}
	flag := r.Int32()
	s.Changelog = flag == 1
	if flag > 1 {
		return fmt.Errorf("changelog: store %q: decode control: %w: flag %d", id, ErrControl, flag)
	}
	if err := finish(r); err != nil {
		return fmt.Errorf("changelog: store %q: %w", id, err)
	}
	c.Stores = put(c.Stores, id, s)
	return nil
}
