package store

// Layout maps rows to their form in the changelog and back. The local order of rows is that in which they are fired and
// dropped; the changelog has the bytes of Kafka Streams wherever it has such a store. A Layout is used by several tasks
// at a time and keeps no state.
type Layout interface {
	// Export returns the changelog form of a row: key and value without the timestamp; a nil value says that the row was
	// removed. A new key is built by appending to dst, which is empty. All three results may be parts of key and value,
	// and must not be changed afterwards. header travels in a record header, nil: none. A nil ckey keeps the change out of
	// the changelog.
	Export(dst, key, value []byte) (ckey, cvalue, header []byte)
	// Import is the way back, for a record of that time, in ms. A nil cvalue is a tombstone, a nil value removes the row.
	// New bytes are appended to dst. The results are used before the next call.
	Import(dst, ckey, cvalue, header []byte, time int64) (key, value []byte, err error)
}
