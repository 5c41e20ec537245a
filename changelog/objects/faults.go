package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/tidemark/tidemark/internal/clock"
)

// Kind is what an operation does.
type Kind int

// The operations of a Store.
const (
	OpPut Kind = iota + 1
	OpGet
	OpList
	OpDelete
)

func (k Kind) String() string {
	if k < OpPut || k > OpDelete {
		return "unknown"
	}
	return [...]string{"put", "get", "list", "delete"}[k-OpPut]
}

// Op is one operation of a store with faults.
type Op struct {
	Kind Kind
	Key  string // the prefix of a listing; the first of the keys of a deletion
	N    int64  // counts the operations of the store from 1
}

// Fault is what becomes of one operation. The zero Fault leaves it alone.
type Fault struct {
	// Delay passes before the operation begins.
	Delay time.Duration
	// Err is the result. Nothing is done, unless Done is set: then the operation happens and its answer is lost.
	Err  error
	Done bool
	// Damage changes the bytes that a Put stores or a Get returns, see Cut and Flip. The argument is a copy.
	Damage func(b []byte) []byte
	// Reset ends the reader of a Get with io.ErrUnexpectedEOF instead of io.EOF, behind what Damage has left of the bytes.
	Reset bool
	// Hide leaves keys out of a listing, as one does that lags behind.
	Hide func(key string) bool
}

// Cut returns the damage that leaves the first n bytes.
func Cut(n int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:min(n, len(b))] }
}

// Flip returns the damage that changes byte i, counted from the end if negative.
func Flip(i int) func([]byte) []byte {
	return func(b []byte) []byte {
		at := i
		if at < 0 {
			at += len(b)
		}
		if at >= 0 && at < len(b) {
			b[at] ^= 0x40
		}
		return b
	}
}

// WithFaults returns a store that does to s what the plan says, for tests. The plan is called before every operation, by
// any goroutine. A nil clock is that of the system; in a testing/synctest bubble it is the bubble's.
func WithFaults(s Store, clk clock.Clock, plan func(Op) Fault) Store {
	if clk == nil {
		clk = clock.Real()
	}
	return &faulty{store: s, clk: clk, plan: plan}
}

type faulty struct {
	store Store
	clk   clock.Clock
	plan  func(Op) Fault
	n     atomic.Int64
}

// next returns the fault of an operation after its delay; the error ends the operation at once.
func (f *faulty) next(ctx context.Context, kind Kind, key string) (Fault, error) {
	fault := f.plan(Op{kind, key, f.n.Add(1)})
	if err := pause(ctx, f.clk, fault.Delay); err != nil {
		return fault, err
	}
	if fault.Err != nil && !fault.Done {
		return fault, fault.Err
	}
	return fault, nil
}

func (f *faulty) Put(ctx context.Context, key string, body *io.SectionReader) error {
	fault, err := f.next(ctx, OpPut, key)
	if err != nil {
		return err
	}
	if fault.Damage != nil {
		b, err := readBody(ctx, body)
		if err != nil {
			return err
		}
		body = Bytes(fault.Damage(b))
	}
	return errors.Join(f.store.Put(ctx, key, body), fault.Err)
}

func (f *faulty) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	fault, err := f.next(ctx, OpGet, key)
	if err != nil {
		return nil, err
	}
	if fault.Err != nil {
		return nil, fault.Err
	}
	r, err := f.store.Get(ctx, key, offset, length)
	if err != nil || fault.Damage == nil && !fault.Reset {
		return r, err
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if fault.Damage != nil {
		b = fault.Damage(b)
	}
	end := io.EOF
	if fault.Reset {
		end = io.ErrUnexpectedEOF
	}
	return io.NopCloser(io.MultiReader(bytes.NewReader(b), ended{end})), nil
}

// ended is a reader that has nothing but its error.
type ended struct{ err error }

func (e ended) Read([]byte) (int, error) { return 0, e.err }

func (f *faulty) List(ctx context.Context, prefix string, fn func(Info) error) error {
	fault, err := f.next(ctx, OpList, prefix)
	if err != nil {
		return err
	}
	err = f.store.List(ctx, prefix, func(i Info) error {
		if fault.Hide != nil && fault.Hide(i.Key) {
			return nil
		}
		return fn(i)
	})
	return errors.Join(err, fault.Err)
}

func (f *faulty) Delete(ctx context.Context, keys ...string) error {
	first := ""
	if len(keys) > 0 {
		first = keys[0]
	}
	fault, err := f.next(ctx, OpDelete, first)
	if err != nil {
		return err
	}
	return errors.Join(f.store.Delete(ctx, keys...), fault.Err)
}
