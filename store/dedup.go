package store

import (
	"encoding/binary"

	"github.com/tidemark/tidemark/codec"
)

// DedupView is a store of hashes in buckets of time.
type DedupView struct {
	v   *View[nothing]
	buf [20]byte
}

// DedupViewOf returns the view of a store of kind Dedup. It is the same view on every call for one State.
func DedupViewOf(s *State, store string) (*DedupView, error) {
	return wrapperOf(s, store, Dedup, codec.Codec[nothing](nothingCodec{}), func(v *View[nothing]) (*DedupView, error) {
		return &DedupView{v: v}, nil
	})
}

func (d *DedupView) row(bucket uint32, hash *[16]byte) (*Row[nothing], error) {
	return d.v.Row(AppendDedupKey(d.buf[:0], bucket, hash))
}

// Seen reports whether the hash is in the bucket. Nothing is in an expired bucket.
func (d *DedupView) Seen(bucket uint32, hash *[16]byte) (bool, error) {
	_, ok, err := d.v.Get(AppendDedupKey(d.buf[:0], bucket, hash))
	return ok, err
}

// Time returns the time the hash was added with, in ms, and whether it is in the bucket.
func (d *DedupView) Time(bucket uint32, hash *[16]byte) (time int64, ok bool, err error) {
	// Most hashes are new: Get keeps no row for what is not there.
	if ok, err = d.Seen(bucket, hash); err != nil || !ok {
		return 0, false, err
	}
	r, err := d.row(bucket, hash)
	if err != nil {
		return 0, false, err
	}
	return r.Time, r.Present, nil
}

// Add puts the hash into the bucket and reports whether it is new. time is that of the changelog record, in ms. The
// error is ErrExpired if the bucket has expired.
func (d *DedupView) Add(bucket uint32, hash *[16]byte, time int64) (added bool, err error) {
	r, err := d.row(bucket, hash)
	if err != nil || r.Present {
		return false, err
	}
	d.v.Set(r, nothing{}, time)
	return true, nil
}

// Remove takes the hash out of the bucket again.
func (d *DedupView) Remove(bucket uint32, hash *[16]byte, time int64) error {
	return d.v.Delete(AppendDedupKey(d.buf[:0], bucket, hash), time)
}

// Expire drops all buckets below that one, in one step and without changelog records. Rollback undoes it.
func (d *DedupView) Expire(bucket uint32) {
	d.v.s.Expire(d.v.store, binary.BigEndian.AppendUint32(nil, bucket))
}
