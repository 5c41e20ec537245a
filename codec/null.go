package codec

import (
	"fmt"
	"unsafe"
)

func nullError(schema string) error { return fmt.Errorf("codec: encode %s: %w", schema, ErrNull) }

// isNilPointer reports whether *v, whose type T is a pointer type, is nil. It spares the call of reflect per value.
func isNilPointer[T any](v *T) bool { return *(*unsafe.Pointer)(unsafe.Pointer(v)) == nil }
