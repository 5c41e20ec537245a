package store

// Bulk fills a DB from changelogs: it keeps the last value of every key in memory, sorts, and loads.
type Bulk struct{}

// NewBulk starts a bulk restore into db, which may hold earlier state of the same stores; the caller keeps db. limit
// is the size of the memory in bytes; when it is reached what has been added is loaded into the DB. Default: 64 MB.
// A crash before Finish leaves the earlier progress, from which the restore may run again, or none, see ErrPartial.
func NewBulk(db DB, specs []Spec, limit int64) (*Bulk, error) { panic("unfinished") }

// Add takes one change of the store with that index in the specs. A nil value removes the row; a later Add wins. It
// copies what it keeps.
func (b *Bulk) Add(store int, key, value []byte, time int64) error { panic("unfinished") }

// Finish loads the rest together with the progress it stands for. The Bulk is used up.
func (b *Bulk) Finish(progress []byte) error { panic("unfinished") }
