package check

import (
	"fmt"
	"slices"
	"strings"
)

// Report counts findings.
type Report struct {
	// Lost counts inputs without effect, Duplicated effects that came twice, Wrong everything else that cannot be.
	Lost, Duplicated, Wrong int
	// Details explains the first findings.
	Details []string
}

const maxDetails = 12

// OK says whether nothing was found.
func (r *Report) OK() bool { return r.Lost+r.Duplicated+r.Wrong == 0 }

func (r *Report) String() string {
	s := fmt.Sprintf("lost %d duplicated %d", r.Lost, r.Duplicated)
	if r.Wrong > 0 {
		s += fmt.Sprintf(" wrong %d", r.Wrong)
	}
	return s
}

// Explain returns the details, one a line.
func (r *Report) Explain() string { return strings.Join(r.Details, "\n") }

// Add adds the findings of o.
func (r *Report) Add(o *Report) {
	r.Lost += o.Lost
	r.Duplicated += o.Duplicated
	r.Wrong += o.Wrong
	for _, d := range o.Details {
		r.detail("%s", d)
	}
}

func (r *Report) detail(format string, args ...any) {
	if len(r.Details) < maxDetails {
		r.Details = append(r.Details, fmt.Sprintf(format, args...))
	}
}

func (r *Report) lost(n int, format string, args ...any) {
	r.Lost += n
	r.detail("lost %d: "+format, append([]any{n}, args...)...)
}

func (r *Report) duplicated(format string, args ...any) {
	r.Duplicated++
	r.detail("duplicated: "+format, args...)
}

// Wrongly notes something that cannot be.
func (r *Report) Wrongly(format string, args ...any) {
	r.Wrong++
	r.detail("wrong: "+format, args...)
}

// Record is one record of a log.
type Record struct {
	Partition  int32
	Offset     int64
	Time       int64 // ms
	Key, Value []byte
	Headers    []Header
}

// Header is one header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Header returns the value of the last header with that key, nil if there is none.
func (r Record) Header(key string) []byte {
	for _, h := range slices.Backward(r.Headers) {
		if h.Key == key {
			return h.Value
		}
	}
	return nil
}

func (r Record) at() string { return fmt.Sprintf("%d@%d %s", r.Partition, r.Offset, r.Key) }
