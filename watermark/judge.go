package watermark

import (
	"errors"
	"fmt"
)

// ErrNoTimestamp marks a record without timestamp where one is needed. Who
// returns it names topic, partition and offset.
var ErrNoTimestamp = errors.New("record without timestamp")

// Missing says what happens to a record without timestamp. A negative time is
// a time: it lies before 1970.
type Missing uint8

const (
	// Fail stops with ErrNoTimestamp.
	Fail Missing = iota
	// Late sends the record to the late output, reason bad_timestamp.
	Late
	// PartitionTime takes the highest time seen in the partition, and fails
	// where there is none yet.
	PartitionTime
)

// String names the policy.
func (m Missing) String() string {
	switch m {
	case Fail:
		return "fail"
	case Late:
		return "late"
	case PartitionTime:
		return "partition time"
	}
	return fmt.Sprintf("Missing(%d)", uint8(m))
}

// Verdict is what Judge says about the time of a record.
type Verdict uint8

const (
	// Accept: the record has a time.
	Accept Verdict = iota
	// NoTimestamp: the record fails with ErrNoTimestamp.
	NoTimestamp
	// BadTimestamp: the record goes to the late output.
	BadTimestamp
	// FutureTimestamp: the record goes to the late output.
	FutureTimestamp
)

// String is the reason that the late output and the metrics give.
func (v Verdict) String() string {
	switch v {
	case Accept:
		return "accept"
	case NoTimestamp:
		return "no_timestamp"
	case BadTimestamp:
		return "bad_timestamp"
	case FutureTimestamp:
		return "future_timestamp"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// Judge returns the event time of a record: t if ok, else what the policy makes
// of seen, the highest time accepted in the partition so far (Unknown for none).
// now is the time of day. A record that is not accepted must not be observed by
// the generator.
func (s *Settings) Judge(t int64, ok bool, seen, now int64) (int64, Verdict) {
	if !ok {
		switch {
		case s.Missing == Late:
			return Unknown, BadTimestamp
		case s.Missing == PartitionTime && seen != Unknown:
			return seen, Accept
		}
		return Unknown, NoTimestamp
	}
	if s.MaxFuture > 0 && t > add(now, s.MaxFuture.Milliseconds()) {
		return t, FutureTimestamp
	}
	return t, Accept
}
