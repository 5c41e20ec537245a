package store

// table is an open addressing hash table from 32-bit hashes to 32-bit references. It holds no keys: the caller compares
// them. A slot is hash<<32 | reference+1, or 0 if it is empty; a reference is probed for from the low bits of its hash,
// so growing and removing need no look at what is referred to. The garbage collector does not look into it.
type table struct {
	slots []uint64
	n     int
	mask  uint32
}

const minSlots = 16

// insert adds a reference that is not in the table.
func (t *table) insert(hash, ref uint32) {
	if t.n >= len(t.slots)/8*5 {
		t.grow()
	}
	t.n++
	t.place(uint64(hash)<<32 | uint64(ref) + 1)
}

func (t *table) place(slot uint64) {
	for i := uint32(slot>>32) & t.mask; ; i = (i + 1) & t.mask {
		if t.slots[i] == 0 {
			t.slots[i] = slot
			return
		}
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]uint64, max(minSlots, 2*len(old)))
	t.mask = uint32(len(t.slots) - 1)
	for _, s := range old {
		if s != 0 {
			t.place(s)
		}
	}
}

// remove takes out a reference that is in the table. The slots behind it move up, so that no probe ends early.
func (t *table) remove(hash, ref uint32) {
	want := uint64(hash)<<32 | uint64(ref) + 1
	i := hash & t.mask
	for t.slots[i] != want {
		i = (i + 1) & t.mask
	}
	t.n--
	for j := i; ; {
		j = (j + 1) & t.mask
		s := t.slots[j]
		if s == 0 {
			break
		}
		if home := uint32(s>>32) & t.mask; (j-home)&t.mask >= (j-i)&t.mask {
			t.slots[i] = s
			i = j
		}
	}
	t.slots[i] = 0
}
