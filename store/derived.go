package store

// derived makes the list of due times of a store of sessions from the rows of that store on their way to the DB. A
// session's end is in its key, so what a row adds to the list or takes from it is known without a look at what was there
// before: the list in the DB is exact. Nothing of it is kept in generations.
type derived struct {
	mem     []byte
	entries []derivedEntry
	items   []item // still to be handed out
	row     []byte // a due time has no time of its own and no value
}

type derivedEntry struct {
	off, n uint32 // key of the DB, in mem
	set    bool
}

// derivedLists returns by store the store of due times that is derived from it, or -1.
func derivedLists(specs []Spec, dues []int) []int {
	out := make([]int, len(specs))
	for i := range specs {
		out[i] = -1
		if specs[i].Kind == Session {
			out[i] = dues[i]
		}
	}
	return out
}

// add takes the key of a row that is written or removed.
func (d *derived) add(key []byte, set bool) {
	n := len(key) - 16
	if n < 0 {
		return
	}
	off := uint32(len(d.mem))
	d.mem = append(d.mem, 0, 0) // the number of the list
	d.mem = append(append(d.mem, key[n:n+8]...), key...)
	d.entries = append(d.entries, derivedEntry{off, uint32(len(d.mem)) - off, set})
}

// sort gets ready for handing out the list, whose store has that number.
func (d *derived) sort(number uint16) {
	d.items = make([]item, len(d.entries))
	for i := range d.entries {
		d.mem[d.entries[i].off], d.mem[d.entries[i].off+1] = byte(number>>8), byte(number)
		d.items[i].pos = uint64(i)
	}
	sortItems(d.items, make([]item, len(d.items)), commonPrefix(d.items, d.key), d.key)
}

func (d *derived) key(pos uint64) []byte {
	e := &d.entries[pos]
	return d.mem[e.off : e.off+e.n : e.off+e.n]
}

// next hands out one entry to a run.
func (d *derived) next(r *layerRun) bool {
	if len(d.items) == 0 {
		return false
	}
	pos := d.items[0].pos
	d.items = d.items[1:]
	r.key, r.value = d.key(pos), nil
	if d.entries[pos].set {
		r.value = d.row
	}
	return true
}
