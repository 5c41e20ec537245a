package tidemarktest

import (
	"time"

	"github.com/tidemark/tidemark/watermark"
)

// Options say what the app under test runs on. The zero value is one partition, one instance, and a clock that starts
// at the beginning of 2024.
type Options struct {
	// Partitions of every topic of the user. Default 1.
	Partitions int
	// Topics has the partitions of topics that differ.
	Topics map[string]int
	// Instances that share the tasks. Default 1.
	Instances int
	// Start is where the clock stands. Default 2024-01-01 00:00 UTC.
	Start time.Time
	// CommitInterval is the distance of the commits that Advance makes; they lie on multiples of it since 1970. Default
	// 100 ms.
	CommitInterval time.Duration
	// DeadLetter sends records that cannot be processed to Driver.DeadLetters. Without it they fail the test.
	DeadLetter bool
	// Restore says how tasks get their state back when they are opened. Default Local.
	Restore Restore

	// firings bounds the windows and timers that fire before a commit; 0: no bound.
	firings int
	// lazy leaves it to the caller when tasks process what is there.
	lazy bool
}

// Restore is a way in which a task that is opened gets its state back.
type Restore int

const (
	// Local uses the database that the instance has of the task, if it has one, and the changelogs from there.
	Local Restore = iota
	// Changelog makes the database anew from the changelogs.
	Changelog
)

// String returns "local" or "changelog".
func (r Restore) String() string {
	if r == Changelog {
		return "changelog"
	}
	return "local"
}

func (o Options) withDefaults() Options {
	o.Partitions = max(o.Partitions, 1)
	o.Instances = max(o.Instances, 1)
	if o.Start.IsZero() {
		o.Start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if o.CommitInterval <= 0 {
		o.CommitInterval = 100 * time.Millisecond
	}
	return o
}

// announcing makes tasks announce every change of their watermark with the next commit. The engine spaces the
// announcements, which here, where the clock stands still, would hold them back for good.
var announcing = watermark.BroadcastOptions{Granularity: time.Millisecond, Interval: 1, Refresh: 1 << 62}
