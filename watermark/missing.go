package watermark

import "fmt"

// Missing says what happens to a record without timestamp. A negative time is
// a time: it lies before 1970.
type Missing uint8

const (
	// Fail stops with an error that names the record.
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
