package nexmark

import "container/heap"

// delays holds back events until others that happened after them have come.
type delays struct{ held heldEvents }

// held is an event that comes when one of this time would.
type held struct {
	at, n int64 // n is the event's number: among equals the older one comes first
	e     Event
}

func (d *delays) push(at, n int64, e Event) { heap.Push(&d.held, held{at, n, e}) }
func (d *delays) pop() Event                { return heap.Pop(&d.held).(held).e }

// due reports whether an event comes before one of time now.
func (d *delays) due(now int64) bool { return len(d.held) > 0 && d.held[0].at <= now }

// heldEvents is a heap in the order of coming.
type heldEvents []held

func (h heldEvents) Len() int      { return len(h) }
func (h heldEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heldEvents) Push(x any)   { *h = append(*h, x.(held)) }

func (h heldEvents) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].n < h[j].n
}

func (h *heldEvents) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = held{}
	*h = old[:len(old)-1]
	return last
}
