package rebalance

import "math"

// flow is a network with capacities and costs. It finds the cheapest of the largest
// flows by pushing along shortest paths; costs may be negative, cycles of negative
// cost may not exist. Equal networks, built in equal order, give equal flows.
type flow struct {
	edges []flowEdge // edge e and its reverse e^1
	out   [][]int    // edges by node
}

type flowEdge struct {
	to, room, cost int
}

func newFlow(nodes int) *flow { return &flow{out: make([][]int, nodes)} }

// edge adds an edge and returns its number for used.
func (f *flow) edge(from, to, capacity, cost int) int {
	n := len(f.edges)
	f.edges = append(f.edges, flowEdge{to, capacity, cost}, flowEdge{from, 0, -cost})
	f.out[from] = append(f.out[from], n)
	f.out[to] = append(f.out[to], n+1)
	return n
}

// used returns the flow along an edge.
func (f *flow) used(edge int) int { return f.edges[edge^1].room }

// run pushes as much as possible from source to sink.
func (f *flow) run(source, sink int) {
	dist := make([]int, len(f.out))
	via := make([]int, len(f.out))
	waiting := make([]bool, len(f.out))
	var queue []int
	for {
		for i := range dist {
			dist[i], via[i] = math.MaxInt, -1
		}
		dist[source] = 0
		queue = append(queue[:0], source)
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			waiting[at] = false
			for _, e := range f.out[at] {
				edge := f.edges[e]
				if edge.room == 0 || dist[at]+edge.cost >= dist[edge.to] {
					continue
				}
				dist[edge.to], via[edge.to] = dist[at]+edge.cost, e
				if !waiting[edge.to] {
					waiting[edge.to] = true
					queue = append(queue, edge.to)
				}
			}
		}
		if via[sink] < 0 {
			return
		}
		push := math.MaxInt
		for at := sink; at != source; at = f.edges[via[at]^1].to {
			push = min(push, f.edges[via[at]].room)
		}
		for at := sink; at != source; at = f.edges[via[at]^1].to {
			f.edges[via[at]].room -= push
			f.edges[via[at]^1].room += push
		}
	}
}
