package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/internal/engine"
)

// Copies are the settings of snapshots. Without an interval there are none.
type Copies struct {
	Interval time.Duration
	Grace    time.Duration
	Keep     int
	Restore  engine.RestoreMode
	Rate     float64 // bytes per second that a restore expects of the bucket
}

// On says whether there are snapshots.
func (c Copies) On() bool { return c.Interval > 0 }

func (c Copies) String() string {
	if !c.On() {
		return "none"
	}
	mode := map[engine.RestoreMode]string{engine.RestoreAuto: "auto", engine.RestoreLazy: "lazy", engine.RestoreFull: "full"}[c.Restore]
	return fmt.Sprintf("every %v, restore %s at %.0e B/s, keep %d, grace %v", c.Interval, mode, c.Rate, c.Keep, c.Grace)
}

// bucket is the object store of a simulation. What is wrong with it goes on for a time, and ends when the world is calm.
type bucket struct {
	w   *World
	mem *objects.Mem

	mu     sync.Mutex
	spells []spell
	hurt   map[string]bool // objects that were damaged or removed where they lie, by key; true: with the size they had
}

// spell is something wrong with the bucket for some time.
type spell struct {
	until time.Time
	plan  func(objects.Op) objects.Fault
}

func newBucket(w *World) *bucket {
	return &bucket{w: w, mem: objects.NewMem(), hurt: make(map[string]bool)}
}

// of returns the bucket as one life of an instance sees it.
func (b *bucket) of(n *Node) objects.Store {
	return objects.WithFaults(reach{b.mem, n}, nil, b.plan)
}

func (b *bucket) plan(op objects.Op) objects.Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, s := range b.spells {
		if now.After(s.until) {
			continue
		}
		if f := s.plan(op); f.Err != nil || f.Delay > 0 || f.Damage != nil || f.Reset || f.Hide != nil {
			if f.Damage != nil && op.Kind == objects.OpPut {
				b.hurt[op.Key] = len(f.Damage(make([]byte, 1<<10))) == 1<<10
			}
			return f
		}
	}
	return objects.Fault{}
}

// calm ends everything that is wrong. What lies damaged stays so.
func (b *bucket) calm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spells = nil
}

// isHurt says whether an object was damaged or removed, and whether a listing does not show that.
func (b *bucket) isHurt(key string) (hurt, hidden bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hidden, hurt = b.hurt[key]
	return hurt, hidden
}

// reach is the way of one life to the bucket: the dead change nothing any more.
type reach struct {
	objects.Store
	n *Node
}

var errDead = errors.New("the process is dead")

func (r reach) Put(ctx context.Context, key string, body *io.SectionReader) error {
	if r.n.isDead() {
		return errDead
	}
	return r.Store.Put(ctx, key, body)
}

func (r reach) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if r.n.isDead() {
		return nil, errDead
	}
	return r.Store.Get(ctx, key, offset, length)
}

func (r reach) Delete(ctx context.Context, keys ...string) error {
	if r.n.isDead() {
		return errDead
	}
	return r.Store.Delete(ctx, keys...)
}

var (
	errSlowDown = errors.New("503 SlowDown")
	errDenied   = errors.New("403 AccessDenied")
)

// trouble does one random thing to the bucket.
func (b *bucket) trouble(rng *rand.Rand) {
	until := time.Duration(200+rng.IntN(5000)) * time.Millisecond
	every := int64(1 + rng.IntN(4))
	at := rng.IntN(400) - 100
	delay := time.Duration(rng.IntN(2000)) * time.Millisecond
	some := func(f objects.Fault, kinds ...objects.Kind) func(objects.Op) objects.Fault {
		return func(op objects.Op) objects.Fault {
			for _, k := range kinds {
				if op.Kind == k && op.N%every == 0 {
					return f
				}
			}
			return objects.Fault{}
		}
	}
	var what string
	var plan func(objects.Op) objects.Fault
	switch rng.IntN(11) {
	case 0:
		what, every = "is down", 1
		plan = some(objects.Fault{Err: errSlowDown}, objects.OpGet, objects.OpPut, objects.OpList, objects.OpDelete)
	case 1:
		what, every = "is read-only", 1
		plan = some(objects.Fault{Err: errDenied}, objects.OpPut, objects.OpDelete)
	case 2:
		what = fmt.Sprintf("fails every %d", every)
		plan = some(objects.Fault{Err: errSlowDown}, objects.OpGet, objects.OpPut, objects.OpList, objects.OpDelete)
	case 3:
		what = fmt.Sprintf("loses every %d answer", every)
		plan = some(objects.Fault{Err: io.ErrUnexpectedEOF, Done: true}, objects.OpPut, objects.OpDelete)
	case 4:
		what = fmt.Sprintf("takes %v", delay)
		every = 1
		plan = some(objects.Fault{Delay: delay}, objects.OpGet, objects.OpPut, objects.OpList, objects.OpDelete)
	case 5:
		what = fmt.Sprintf("changes byte %d of every %d answer", at, every)
		plan = some(objects.Fault{Damage: objects.Flip(at)}, objects.OpGet)
	case 6:
		what = fmt.Sprintf("ends every %d answer early", every)
		plan = some(objects.Fault{Damage: objects.Cut(max(at, 0)), Reset: at%2 == 0}, objects.OpGet)
	case 7:
		what = fmt.Sprintf("stores every %d object with byte %d changed", every, at)
		plan = some(objects.Fault{Damage: objects.Flip(at)}, objects.OpPut)
	case 8:
		what = fmt.Sprintf("stores every %d object cut at %d", every, max(at, 0))
		plan = some(objects.Fault{Damage: objects.Cut(max(at, 0))}, objects.OpPut)
	case 9:
		// The set of keys hidden is the same for every listing of this spell.
		what = "hides objects from listings"
		plan = some(objects.Fault{Hide: func(key string) bool { return sha256.Sum256([]byte(key))[0]%2 == byte(every)%2 }}, objects.OpList)
		every = 1
	default:
		part := [...]string{"", "/sst/", "/manifest/"}[rng.IntN(3)]
		b.lose(part)
		return
	}
	b.w.note("the bucket %s for %v", what, until)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spells = append(b.spells, spell{time.Now().Add(until), plan})
}

// lose removes what has part in its key.
func (b *bucket) lose(part string) {
	var keys []string
	err := b.mem.List(context.Background(), "", func(i objects.Info) error {
		if strings.Contains(i.Key, part) {
			keys = append(keys, i.Key)
		}
		return nil
	})
	b.mu.Lock()
	for _, k := range keys {
		b.hurt[k] = false
	}
	b.mu.Unlock()
	if err == nil {
		err = b.mem.Delete(context.Background(), keys...)
	}
	b.w.note("the bucket has lost %d objects %q", len(keys), part)
	if err != nil {
		b.w.fail("%v", err)
	}
}
