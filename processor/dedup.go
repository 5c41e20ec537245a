package processor

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/store"
)

// DedupConfig describes an operator that drops records whose id has passed before.
type DedupConfig[K, V, ID any] struct {
	Op      Op                                     // its operator
	Store   string                                 // id of its store
	Node    *Node                                  // its watermark
	ID      func(c *Context, k K, v V) (ID, error) // the id of a record
	Codec   codec.Codec[ID]                        // of ids; one that stands for null is no id
	Horizon int64                                  // in ms
	Width   int64                                  // of a bucket, in ms; at most Horizon if AnyTime
	AnyTime bool                                   // records of one id match within Horizon, else at the same time only
	Next    Func[K, V]
}

// NewDedup returns the operator.
func NewDedup[K, V, ID any](s *store.State, cfg DedupConfig[K, V, ID]) (Func[K, V], error) {
	view, err := store.DedupViewOf(s, cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	o := &dedup[K, V, ID]{DedupConfig: cfg, view: view, null: nullOf(cfg.Codec), keep: cfg.Horizon}
	if cfg.AnyTime {
		// The oldest record that is still accepted may match one that is older by another horizon.
		o.keep = satAdd(cfg.Horizon, cfg.Horizon)
	}
	cfg.Node.work = o
	return o.process, nil
}

// dedup keeps the hashes of ids in buckets of event time. A bucket is dropped as a whole when the watermark has passed its
// end by the time it is kept for.
type dedup[K, V, ID any] struct {
	DedupConfig[K, V, ID]
	view  *store.DedupView
	null  codec.Nullable[ID]
	keep  int64  // in ms
	floor uint32 // the first bucket that is kept
	top   uint32 // no bucket above holds anything
	buf   []byte
}

// zeroBucket is the bucket that begins at time 0.
const zeroBucket = 1 << 31

// bucket returns the bucket of a time. Times that are thousands of years away share the first and the last one.
func (o *dedup[K, V, ID]) bucket(t int64) uint32 {
	q := t / o.Width
	if t%o.Width < 0 {
		q--
	}
	return uint32(min(max(q, -zeroBucket), zeroBucket-1) + zeroBucket)
}

// process passes a record on unless its id has passed before.
func (o *dedup[K, V, ID]) process(c *Context, k K, v V) error {
	n := &c.counters[o.Op]
	n.In++
	if c.key == nil {
		return c.fail(o.Op, StageNullKey, ErrNull)
	}
	headers := c.headers
	c.op = o.Op
	id, err := o.ID(c, k, v)
	if err != nil {
		return c.fail(o.Op, StageUser, err)
	}
	if o.null == nil || !o.null.IsNull(id) {
		w := o.Node.w
		if o.bucket(c.time) < o.bucket(satAdd(w, -o.Horizon)) {
			return c.refuse(o.Op, Late{Reason: DedupHorizon, Watermark: w, By: satAdd(w, -max(c.time, -math.MaxInt64))})
		}
		hash, err := o.hash(c, id)
		if err != nil {
			return c.fail(o.Op, StageEncode, err)
		}
		fresh, err := o.add(c, &hash)
		if err != nil {
			return c.stateError(o.Op, err)
		}
		if !fresh {
			n.Duplicates++
			return nil
		}
	}
	n.Folded++
	if err := o.Next(c, k, v); err != nil {
		return err
	}
	c.headers = headers
	return nil
}

// hash returns what is kept of an id: the first half of the SHA-256 of
//
//	| length of the key, uvarint | key | time, 8, big-endian, unless any time matches | id |
//
// Ids come from outside, and a collision would drop a record in silence: with this hash nobody can make one. It costs a
// small part of the probe that follows.
func (o *dedup[K, V, ID]) hash(c *Context, id ID) (h [16]byte, err error) {
	b := binary.AppendUvarint(o.buf[:0], uint64(len(c.key)))
	b = append(b, c.key...)
	if !o.AnyTime {
		b = binary.BigEndian.AppendUint64(b, uint64(c.time))
	}
	if b, err = o.Codec.Append(b, id); err != nil {
		return h, err
	}
	o.buf = b
	sum := sha256.Sum256(b)
	copy(h[:], sum[:])
	return h, nil
}

// add notes that an id has passed and reports whether it is the first time.
func (o *dedup[K, V, ID]) add(c *Context, hash *[16]byte) (bool, error) {
	own := o.bucket(c.time)
	if o.AnyTime {
		// Ids of one bucket match in any case: its width is at most the horizon. So there is at most one of a hash.
		last := min(o.bucket(satAdd(c.time, o.Horizon)), o.top)
		for b := max(o.bucket(satAdd(c.time, -o.Horizon)), o.floor); b <= last; b++ {
			t, ok, err := o.view.Time(b, hash)
			if err != nil {
				return false, err
			}
			if ok && t <= satAdd(c.time, o.Horizon) && c.time <= satAdd(t, o.Horizon) {
				return false, nil
			}
			if b == math.MaxUint32 {
				break
			}
		}
	}
	fresh, err := o.view.Add(own, hash, c.time)
	if fresh {
		c.effects++
		o.top = max(o.top, own)
	}
	return fresh, err
}

// due implements fires: to look costs nothing.
func (o *dedup[K, V, ID]) due() int64 { return math.MinInt64 }

// advance implements fires.
func (o *dedup[K, V, ID]) advance(_ *Context, w int64, _ *budget) (bool, error) {
	o.expire(w)
	return true, nil
}

func (o *dedup[K, V, ID]) expire(w int64) {
	if b := o.bucket(satAdd(w, -o.keep)); b > o.floor {
		o.floor = b
		o.view.Expire(b)
	}
}

// cursor implements fires: the last bucket that holds something, 4 bytes.
func (o *dedup[K, V, ID]) cursor(dst []byte) []byte { return binary.BigEndian.AppendUint32(dst, o.top) }

// resume implements fires.
func (o *dedup[K, V, ID]) resume(b []byte) error {
	if len(b) != 4 {
		return errCursor
	}
	o.top = binary.BigEndian.Uint32(b)
	o.expire(o.Node.w) // what a restore brings back may have expired
	return nil
}

// pause implements fires.
func (o *dedup[K, V, ID]) pause() error { return nil }

// close implements fires.
func (o *dedup[K, V, ID]) close() error { return nil }

// Salt returns the key of a record for a stage that spreads the ids of one key over several tasks: the salt, 2 bytes
// big-endian, then the encoded key. Records of one key and id have one salt. A null id is spread as an id of no bytes.
func Salt[ID any](c *Context, ids codec.Codec[ID], id ID, salts int) ([]byte, error) {
	if c.key == nil {
		return nil, c.fail(c.op, StageNullKey, ErrNull)
	}
	var b []byte
	if null := nullOf(ids); null == nil || !null.IsNull(id) {
		var err error
		if b, err = ids.Append(nil, id); err != nil {
			return nil, c.fail(c.op, StageEncode, err)
		}
	}
	sum := sha256.Sum256(b)
	salt := binary.BigEndian.Uint64(sum[:]) % uint64(salts)
	return append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(c.key)), uint16(salt)), c.key...), nil
}

// Unsalt returns the encoded key in a key that Salt has made, nil if it is none.
func Unsalt(key []byte) []byte {
	if len(key) < 2 {
		return nil
	}
	return key[2:]
}
