// Package clock is the only source of time for code that must be testable: whoever waits or asks
// for the time takes a Clock. Nothing outside this package and the commands calls time.Now.
//
// The package starts no goroutine of its own. All implementations are safe for concurrent use.
package clock

import "time"

// Clock tells the time and makes timers.
type Clock interface {
	// Now returns the current time. For Real it carries a monotonic reading.
	Now() time.Time
	// NewTimer returns a timer that sends once on its channel, d from now. A d of zero or less
	// fires at once.
	NewTimer(d time.Duration) Timer
	// NewTicker returns a ticker that sends every d. It panics when d is not positive, as
	// time.NewTicker does.
	NewTicker(d time.Duration) Ticker
	// After is NewTimer(d).C() for callers that never stop the timer.
	After(d time.Duration) <-chan time.Time
}

// Timer is the part of time.Timer that callers need. A stopped or reset timer never delivers a
// value of its earlier setting.
type Timer interface {
	// C returns the channel the timer fires on. It is the same channel for the timer's whole life.
	C() <-chan time.Time
	// Stop keeps the timer from firing and reports whether it was still pending.
	Stop() bool
	// Reset sets the timer to fire d from now and reports whether it was still pending.
	Reset(d time.Duration) bool
}

// Ticker is the part of time.Ticker that callers need. A slow receiver loses ticks.
type Ticker interface {
	// C returns the channel the ticks arrive on.
	C() <-chan time.Time
	// Stop ends the ticks. The channel is not closed.
	Stop()
	// Reset stops the ticker and starts it again with period d.
	Reset(d time.Duration)
}
