package store

// TimerView is a store of timers: one point in time per key and tag, in ms. Setting a timer again moves it.
type queue interface{ reset() }

type TimerView struct{ v *View[int64] }

// TimerViewOf returns the view of a store of kind Timers. It is the same view on every call for one State.
func TimerViewOf(s *State, store string) (*TimerView, error) { panic("") }

// Set sets the timer of key and tag to t.
func (v *TimerView) Set(key, tag []byte, t int64) error { panic("") }

// Delete removes the timer of key and tag, if there is one.
func (v *TimerView) Delete(key, tag []byte) error { panic("") }

// Get returns the time of the timer of key and tag, and whether it is set.
func (v *TimerView) Get(key, tag []byte) (t int64, ok bool, err error) { panic("") }

// PopDue removes the first timer with t <= w, in the order of time, key and tag, and returns it; ok is false if none is
// due. Timers set meanwhile take their place in the order, also before those returned already. The slices are valid
// until the next call on the view.
func (v *TimerView) PopDue(w int64) (key, tag []byte, t int64, ok bool, err error) { panic("") }
