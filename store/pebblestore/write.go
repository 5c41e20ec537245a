package pebblestore

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark/tidemark/store"
)

// maxUnflushed is the size of batches after which Apply flushes by itself. Pebble would let a writer wait, without end on
// a full disk, when too many memtables wait for their flush; flushing first turns that into an error.
const maxUnflushed = 2 * memTableSize

// Apply implements store.DB. It refuses with store.ErrStorage while flushes or compactions fail.
func (d *DB) Apply(b *store.Batch) error {
	if err := d.enter(); err != nil {
		return d.fail("apply", err)
	}
	defer d.leave()
	if err := d.writable(); err != nil {
		return d.fail("apply", err)
	}
	if d.unflushed >= maxUnflushed {
		if err := d.flush(); err != nil {
			return err
		}
	}
	batch := d.pebble.NewBatchWithSize(b.Size() + 16*b.Len() + 16)
	var err error
	b.All(func(key, value, end []byte) {
		switch {
		case err != nil:
		case end != nil:
			if bytes.Compare(key, end) < 0 {
				err = batch.DeleteRange(key, end, nil)
			}
		case value == nil:
			err = batch.Delete(key, nil)
		default:
			err = batch.Set(key, value, nil)
		}
	})
	if err == nil {
		err = d.pebble.Apply(batch, pebble.NoSync)
	}
	if err != nil {
		return d.fail("apply", err)
	}
	d.unflushed += int64(b.Size()) + 1
	if err := batch.Close(); err != nil {
		return d.fail("apply", err)
	}
	return nil
}

// writable is usable, and no trouble in the background.
func (d *DB) writable() error {
	if err := d.usable(); err != nil {
		return err
	}
	if err := d.background.Load(); err != nil {
		return *err
	}
	return nil
}

// Flush implements store.DB. It gives up at the first failure, while Pebble goes on trying in the background.
func (d *DB) Flush() error {
	if err := d.enter(); err != nil {
		return d.fail("flush", err)
	}
	defer d.leave()
	return d.flush()
}

func (d *DB) flush() error {
	if d.unflushed == 0 {
		return nil
	}
	select {
	case <-d.failed: // of an earlier attempt
	default:
	}
	done, err := d.pebble.AsyncFlush()
	if err != nil {
		return d.fail("flush", err)
	}
	for {
		select {
		case <-done:
			d.unflushed = 0
			return nil
		case <-d.failed:
		}
		if err := d.writable(); err != nil {
			return d.fail("flush", err)
		}
	}
}
