package watermark

import "fmt"

// AllIdle says what happens to the watermark of a node when all its inputs are
// idle.
type AllIdle uint8

const (
	// Stay leaves W where it is: at what the last active inputs had reached when
	// they fell silent, in the order in which they did.
	Stay AllIdle = iota
	// AdvanceToMax moves W to the highest watermark of any input, whatever the
	// order in which they fell silent.
	AdvanceToMax
	// AdvanceWithClock does the same and then keeps W at the delay of the
	// strategy and 1 ms below the time of day. For sparse topics whose event time
	// is the time of day; a replay does not repeat it. A task whose W the clock
	// moves announces itself Active: it would be left out behind it, and nothing
	// would move W there.
	AdvanceWithClock
)

// String names the rule.
func (a AllIdle) String() string {
	switch a {
	case Stay:
		return "stay"
	case AdvanceToMax:
		return "advance to max"
	case AdvanceWithClock:
		return "advance with clock"
	}
	return fmt.Sprintf("AllIdle(%d)", uint8(a))
}

// Input is one input of a node: a source partition with its generator, or a
// repartition input with its vector.
type Input struct {
	// W is the watermark of the generator or the vector.
	W int64
	// Seen is the highest event time of the input, Unknown for none: what
	// PartitionTime falls back to. Combine does not look at it.
	Seen int64
	// Idle says that the input is silent, so that the others do not wait for it.
	Idle bool
	// Max says that the input is one of those combined by maximum (Settings.Max).
	Max bool
}

// Combine returns the watermark of a node with these inputs, in any order, that
// was prev before, and whether all of them are idle.
//
// It is the least W of the inputs that are not idle, never below prev. Inputs
// with Max count as one: the highest of them, idle only when all are. Inputs
// that have Finished are left out, so that the end of one input does not speak
// for another that is idle; when all have finished, so has the node.
//
// When all are idle, the rule says what happens; only AdvanceWithClock looks at
// now, the time of day, and delay, both in milliseconds. For AdvanceToMax, the W
// of an idle repartition input is Vector.Max. A node without inputs is idle and
// keeps prev.
func Combine(prev int64, inputs []Input, all AllIdle, now, delay int64) (w int64, idle bool) {
	least, top, group := int64(Finished), int64(Unknown), int64(Unknown)
	var open, active, groupActive bool
	for i := range inputs {
		in := &inputs[i]
		if in.W == Finished {
			continue
		}
		open = true
		top = max(top, in.W)
		switch {
		case in.Max:
			group = max(group, in.W)
			groupActive = groupActive || !in.Idle
		case !in.Idle:
			active = true
			least = min(least, in.W)
		}
	}
	if groupActive {
		active = true
		least = min(least, group)
	}
	switch {
	case len(inputs) == 0:
		return prev, true
	case !open:
		return Finished, false
	case active:
		return max(prev, least), false
	case all == AdvanceToMax:
		return max(prev, top), true
	case all == AdvanceWithClock:
		return max(prev, top, below(now, delay)), true
	}
	return prev, true
}
