package watermark

// Holder is the upstream task that holds a vector back.
type Holder struct {
	Writer uint32
	Task   uint32
	W      int64 // Unknown for a task not heard of
	Heard  bool
}

// Holder returns the task to look at when W does not move: the first one not
// heard of, else the active one with the least W; false if no task holds W back.
func (v *Vector) Holder() (Holder, bool) {
	var least Holder
	found := false
	for i := range v.writers {
		u := &v.writers[i]
		if len(u.tasks) == 0 {
			return Holder{Writer: u.id, W: Unknown}, true
		}
		for k := range u.tasks {
			r := &u.tasks[k]
			switch {
			case !r.heard:
				return Holder{Writer: u.id, Task: uint32(k), W: Unknown}, true
			case r.state == Active && (!found || r.w < least.W):
				least, found = Holder{u.id, uint32(k), r.w, true}, true
			}
		}
	}
	return least, found
}
