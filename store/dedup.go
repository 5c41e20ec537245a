package store

// DedupView is a store of hashes in buckets of time.
type DedupView struct{ v *View[nothing] }

type nothing struct{}

// DedupViewOf returns the view of a store of kind Dedup. It is the same view on every call for one State.
func DedupViewOf(s *State, store string) (*DedupView, error) { panic("") }

// Seen reports whether the hash is in the bucket. Nothing is in an expired bucket.
func (d *DedupView) Seen(bucket uint32, hash *[16]byte) (bool, error) { panic("") }

// Add puts the hash into the bucket and reports whether it is new. time is that of the changelog record, in ms. The
// error is ErrExpired if the bucket has expired.
func (d *DedupView) Add(bucket uint32, hash *[16]byte, time int64) (added bool, err error) { panic("") }

// Expire drops all buckets below bucket, in one step and without changelog records. Rollback undoes it.
func (d *DedupView) Expire(bucket uint32) { panic("") }
