package processor

import (
	"bytes"
	"sort"
)

// maxCached is how many rows of slices and blocks an operator keeps decoded.
const maxCached = 1 << 17

// blockCache keeps the rows of slices and blocks that firings read again and again: windows that follow each other have most
// of them in common, and to open a cursor over a block costs a sort of its rows. What a late record changes is dropped.
type blockCache[A any] struct {
	blocks map[block]*rowList[A]
	rows   int
	turn   int // of the firing
}

// rowList is the rows of one slice or block by key.
type rowList[A any] struct {
	keys []byte
	ends []int // of the keys in keys
	accs []A
	at   []int64 // times
	turn int     // the firing that has used it last
}

func (l *rowList[A]) add(key []byte, acc A, time int64) {
	l.keys = append(l.keys, key...)
	l.ends, l.accs, l.at = append(l.ends, len(l.keys)), append(l.accs, acc), append(l.at, time)
}

func (l *rowList[A]) key(i int) []byte {
	from := 0
	if i > 0 {
		from = l.ends[i-1]
	}
	return l.keys[from:l.ends[i]:l.ends[i]]
}

// from returns the place of the first row whose key is not below first.
func (l *rowList[A]) from(first []byte) int {
	return sort.Search(len(l.at), func(i int) bool { return bytes.Compare(l.key(i), first) >= 0 })
}

// get returns the rows of a block, nil if they are not kept.
func (c *blockCache[A]) get(b block) *rowList[A] {
	l := c.blocks[b]
	if l != nil {
		l.turn = c.turn
	}
	return l
}

// put keeps the rows of a block, if there is room for them besides those that this firing uses.
func (c *blockCache[A]) put(b block, l *rowList[A]) {
	if c.rows+len(l.at) > maxCached {
		for o, old := range c.blocks {
			if old.turn != c.turn {
				c.drop(o)
			}
		}
		if c.rows+len(l.at) > maxCached {
			return
		}
	}
	if c.blocks == nil {
		c.blocks = make(map[block]*rowList[A])
	}
	c.drop(b)
	l.turn = c.turn
	c.blocks[b] = l
	c.rows += len(l.at)
}

func (c *blockCache[A]) drop(b block) {
	if l := c.blocks[b]; l != nil {
		c.rows -= len(l.at)
		delete(c.blocks, b)
	}
}

// expire drops what ends with the slice of that number or before.
func (c *blockCache[A]) expire(last int64) {
	for b := range c.blocks {
		if b.last <= last {
			c.drop(b)
		}
	}
}
