package window

import "fmt"

// Op says what a record of a retracting stream does to the value of its key.
type Op uint8

const (
	// OpRetract takes back the value emitted before, which the record carries: "-U".
	OpRetract Op = iota + 1
	// OpAssert sets a new value: "+U".
	OpAssert
	// OpDelete removes the key, with a null value. Who has followed OpRetract may ignore it: "-D".
	OpDelete
)

// String returns "-U", "+U" or "-D".
func (o Op) String() string {
	switch o {
	case OpRetract:
		return "-U"
	case OpAssert:
		return "+U"
	case OpDelete:
		return "-D"
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// AppendOpHeader appends the value of OpHeader: one byte, 1, 2 or 3 in the order of the constants.
func AppendOpHeader(dst []byte, o Op) []byte { return append(dst, byte(o)) }

// ParseOpHeader decodes the value of OpHeader. The error is an ErrMalformed.
func ParseOpHeader(b []byte) (Op, error) {
	if len(b) != 1 {
		return 0, headerError(OpHeader, len(b))
	}
	o := Op(b[0])
	if o < OpRetract || o > OpDelete {
		return 0, fmt.Errorf("window: header %s: %s: %w", OpHeader, o, ErrMalformed)
	}
	return o, nil
}
