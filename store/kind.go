package store

import "fmt"

// Kind is the type of a store. The numbers are part of the format of a DB.
type Kind uint8

const (
	// KeyValue is a store with one value per key: View.
	KeyValue Kind = 1
	// Window is a store with one value per window end and key, which expires by ends: WindowView.
	Window Kind = 2
	// Session is a store with any number of sessions per key: SessionView.
	Session Kind = 3
	// Versioned is a store with a history per key: VersionedView.
	Versioned Kind = 4
	// List is a store with a list per key: ListView.
	List Kind = 5
	// Timers is a store of points in time per key and tag: TimerView.
	Timers Kind = 6
	// Dedup is a store of hashes in buckets, which expires by buckets: DedupView.
	Dedup Kind = 7
	// Expiring is a store with one value per key, each with the time until which it is good: ExpiringView.
	Expiring Kind = 8

	// due is the store of the due times of another one. It belongs to that and has no changelog.
	due Kind = 64
)

func (k Kind) String() string {
	switch k {
	case KeyValue:
		return "key-value"
	case Window:
		return "window"
	case Session:
		return "session"
	case Versioned:
		return "versioned"
	case List:
		return "list"
	case Timers:
		return "timers"
	case Dedup:
		return "dedup"
	case Expiring:
		return "expiring"
	case due:
		return "due"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// hasDue says whether rows of such a store have a due time, kept in a second store.
func (k Kind) hasDue() bool { return k == Session || k == Timers || k == Expiring }

// grouped says whether the first eight bytes of a key are a time by which rows are written, scanned and dropped.
func (k Kind) grouped() bool { return k == Window }
