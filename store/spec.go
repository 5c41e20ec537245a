package store

import "fmt"

// Spec declares one store of a task.
type Spec struct {
	// ID is the stable name of the store.
	ID string
	// Kind is the type of the store. The zero value means KeyValue.
	Kind Kind
	// KeySchema and ValueSchema are the schemas of the codecs. Rows written under another schema are not readable.
	KeySchema, ValueSchema string
	// Older are schemas of values that the codec reads as well: a DB whose rows were written under one of them is taken
	// over, and counts as one of ValueSchema from the next write on. It is not kept in the DB.
	Older []string
	// Changelog says whether Seal emits the changes of the store.
	Changelog bool
	// Derived says that the rows are made from those of other stores: they are dropped when a changelog brings changes, and
	// whoever makes them makes them again. It is not kept in the DB.
	Derived bool
	// Layout says what its rows look like in the changelog. It is not kept in the DB. Nil means the layout of the kind:
	// VersionedLayout, SessionLayout, ExpiringLayout, and for all others the rows as they are.
	Layout Layout
}

// Change is one changed row of a sealed generation.
type Change struct {
	// Store is the index of the store in the specs given to Open.
	Store int
	// Key and Value are the encoded row, in the form of the changelog. A nil Value means that the row was removed. The
	// bytes never change.
	Key, Value []byte
	// Header is what travels beside the value, nil if there is nothing.
	Header []byte
	// Time is the timestamp of the last write of the row, in ms since 1970.
	Time int64
	// Group is what the row expires by in a store whose changelog is trimmed, see Kind.Trimmed.
	Group int64
}

// SchemaError is returned if the DB holds a store under the same ID with another kind or schema.
type SchemaError struct {
	Have, Want Spec
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("store: %s: written as %v %q to %q, declared as %v %q to %q", e.Want.ID,
		e.Have.Kind, e.Have.KeySchema, e.Have.ValueSchema, e.Want.Kind, e.Want.KeySchema, e.Want.ValueSchema)
}
