package store

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// index finds rows in committed generations for readers. Generations are looked at in blocks of sixteen once all of them
// are committed, and one by one until then: a layer of thirty seconds has about twenty blocks and up to fifteen
// generations. A block is made by the first reader who needs it and serves all later ones. One table over the whole layer
// was the alternative: it changes with every commit, so the worker would have to keep it, asked or not.
type index struct {
	seed maphash.Seed

	mu     sync.Mutex
	blocks map[blockName]*block
}

const blockShift = 4

// blockName is the number of a block, or of a generation by itself.
type blockName struct {
	whole bool
	no    uint32
}

func newIndex(seed maphash.Seed) *index {
	return &index{seed: seed, blocks: make(map[blockName]*block)}
}

// drop forgets what lies below the generations that are not in the DB.
func (x *index) drop(persisted uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for n := range x.blocks {
		last := n.no
		if n.whole {
			last = n.no<<blockShift | (1<<blockShift - 1)
		}
		if last <= persisted {
			delete(x.blocks, n)
		}
	}
}

// cover returns blocks over the generations above persisted, newest first. The oldest may hold earlier ones as well, whose
// rows are those of the DB.
func (x *index) cover(gs *gens, persisted, committed uint32) []*block {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []*block
	for no := committed; no > persisted && no >= gs.base && len(gs.list) > 0; no-- {
		name := blockName{no: no}
		first := no
		if no&(1<<blockShift-1) == 1<<blockShift-1 {
			name = blockName{whole: true, no: no >> blockShift}
			first = no &^ (1<<blockShift - 1)
		}
		b := x.blocks[name]
		// A block that was made for a later reading may lack generations that were in the DB by then: the rows of this one
		// are not, and earlier blocks would be asked before the DB.
		if b == nil || b.from > max(first, persisted+1) {
			b = &block{seed: x.seed, from: max(first, persisted+1)}
			for n := no; n >= max(first, gs.base); n-- {
				if g := gs.list[n-gs.base]; g != nil {
					b.gens = append(b.gens, g)
				}
			}
			if len(b.gens) > 0 {
				b.parts = make([]atomic.Pointer[blockPart], len(b.gens[0].start)-1)
			}
			if name.whole {
				// Its generations have been looked at one by one.
				for n := first; n <= no; n++ {
					delete(x.blocks, blockName{no: n})
				}
			}
			x.blocks[name] = b
		}
		if len(b.gens) > 0 {
			out = append(out, b)
		}
		no = first
		if no == 0 {
			break
		}
	}
	return out
}

// block is some generations one after the other.
type block struct {
	seed maphash.Seed
	from uint32 // it holds all generations from here on
	gens []*gen // newest first

	mu    sync.Mutex                  // held while a part is made
	parts []atomic.Pointer[blockPart] // by store
}

// blockPart is what is known of one store in a block.
type blockPart struct {
	table table
	refs  []blockRef
	run   []blockRef // by key, the newest of each; nil until a scan asks
	runs  sync.Once
}

// blockRef is an entry: the generation's place in the block, and the entry's in the generation.
type blockRef struct{ gen, entry uint32 }

func (b *block) at(r blockRef) (*gen, *entry) {
	g := b.gens[r.gen]
	return g, &g.entries[r.entry]
}

func (b *block) key(r blockRef) []byte {
	g, e := b.at(r)
	return g.sharedKey(e)
}

// part returns what is known of a store, which it finds out first if nobody has asked before.
func (b *block) part(store int) *blockPart {
	if p := b.parts[store].Load(); p != nil {
		return p
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.parts[store].Load(); p != nil {
		return p
	}
	p := new(blockPart)
	for n, g := range b.gens {
		for i := g.start[store]; i < g.start[store+1]; i++ {
			key := g.sharedKey(&g.entries[i])
			hash := uint32(maphash.Bytes(b.seed, key))
			if n > 0 && b.search(p, hash, key) >= 0 {
				continue // there is a newer one
			}
			p.table.insert(hash, uint32(len(p.refs)))
			p.refs = append(p.refs, blockRef{uint32(n), i})
		}
	}
	b.parts[store].Store(p)
	return p
}

func (b *block) search(p *blockPart, hash uint32, key []byte) int {
	if p.table.n == 0 {
		return -1
	}
	for i := hash & p.table.mask; ; i = (i + 1) & p.table.mask {
		s := p.table.slots[i]
		if s == 0 {
			return -1
		}
		if uint32(s>>32) == hash {
			if ref := uint32(s) - 1; bytes.Equal(b.key(p.refs[ref]), key) {
				return int(ref)
			}
		}
	}
}

// find returns the newest entry of a key, nil if there is none.
func (b *block) find(store int, hash uint32, key []byte) (*gen, *entry) {
	p := b.part(store)
	i := b.search(p, hash, key)
	if i < 0 {
		return nil, nil
	}
	return b.at(p.refs[i])
}

// sharedKey is key for readers: the worker may set flags of the entry meanwhile.
func (g *gen) sharedKey(e *entry) []byte {
	at := e.off + numberLen
	end := at + atomic.LoadUint32(&e.klen)&klenMask
	return g.slabs[e.slab][at:end:end]
}

// sharedValue is dbValue for readers.
func (g *gen) sharedValue(e *entry) []byte {
	if e.vlen == tombstone {
		return nil
	}
	at := e.off + numberLen + atomic.LoadUint32(&e.klen)&klenMask
	return g.slabs[e.slab][at : at+e.vlen : at+e.vlen]
}
