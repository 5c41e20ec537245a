package store

import "github.com/tidemark/tidemark/codec"

// Span is one session: Start <= t < End, in ms.
type Span struct{ Start, End int64 }

// SessionView is the typed form of a store of sessions: rows of key and span. A key's sessions do not overlap unless the
// caller makes them.
type SessionView[V any] struct{ v *View[V] }

// SessionViewOf returns the view of a store of kind Session. It is the same view on every call for one State.
func SessionViewOf[V any](s *State, store string, c codec.Codec[V]) (*SessionView[V], error) {
	panic("")
}

// Overlapping appends the sessions of key with Start < span.End and span.Start < End, in ascending order of End, Start.
func (v *SessionView[V]) Overlapping(dst []Span, key []byte, span Span) ([]Span, error) { panic("") }

// Row finds or loads one session. The pointer is valid until the next call on the view.
func (v *SessionView[V]) Row(key []byte, s Span) (*Row[V], error) { panic("") }

// Put sets the value of a session, new or not. time is the timestamp of the row in ms.
func (v *SessionView[V]) Put(key []byte, s Span, val V, time int64) error { panic("") }

// Remove removes a session.
func (v *SessionView[V]) Remove(key []byte, s Span, time int64) error { panic("") }

// Move is Remove of from and Put of to. A session that was made in this generation leaves no trace under its old span.
func (v *SessionView[V]) Move(key []byte, from, to Span, val V, time int64) error { panic("") }

// Due returns a queue of the sessions with End > after. It is good until the next Rollback of the State.
func (v *SessionView[V]) Due(after int64) *SessionQueue[V] { panic("") }

// SessionQueue hands out sessions in the order of End, key, Start, without removing them. Sessions that are put behind
// the last one handed out take their place in it; the others are handed out next.
type SessionQueue[V any] struct{ v *SessionView[V] }

// Next returns the next session with End <= upTo; ok is false if there is none for now. key is valid until the next call
// of Next, the row until the next call on the view.
func (q *SessionQueue[V]) Next(upTo int64) (key []byte, s Span, r *Row[V], ok bool, err error) {
	panic("")
}
