package rebalance

import "slices"

// group returns what the plan tells every member; Self and Heard are left to fill in.
// at holds the host index of every member id.
func (r *Result) group() (a Assignment, at map[string]int) {
	a = Assignment{Format: r.Format, Generation: r.Generation, StateFingerprint: r.StateFingerprint}
	at = make(map[string]int, len(r.Members))
	for i, m := range r.Members {
		d := m.Data
		at[m.ID] = i
		a.Hosts = append(a.Hosts, Host{d.Instance, d.Endpoint, d.Rack, d.Workers, d.TransactionalPrefix})
		if reason, ok := r.Waiting[m.ID]; ok {
			a.Waiting = append(a.Waiting, Waiting{d.Instance, reason})
		}
	}
	placed := make(map[string]int, len(r.Subs))
	for i, s := range r.Subs {
		owners := make([]int, r.Counts[s.ID])
		for n := range owners {
			owners[n] = nobody
		}
		a.Placements = append(a.Placements, Placement{s.ID, owners})
		placed[s.ID] = i
	}
	for id, tasks := range r.Tasks {
		for _, t := range tasks {
			a.Placements[placed[t.Sub]].Owners[t.Partition] = at[id]
		}
	}
	return a, at
}

// partitions returns what the tasks of a member read, by topic, sorted.
func (r *Result) partitions(in map[string]int32, tasks []TaskID) map[string][]int32 {
	out := make(map[string][]int32)
	for _, t := range tasks {
		i := slices.IndexFunc(r.Subs, func(s Sub) bool { return s.ID == t.Sub })
		for _, topic := range r.Subs[i].Topics {
			if t.Partition < in[topic] {
				out[topic] = append(out[topic], t.Partition)
			}
		}
	}
	for _, ps := range out {
		slices.Sort(ps)
	}
	return out
}
