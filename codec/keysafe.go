package codec

import (
	"fmt"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// KeySafe reports whether T may be a key: nil, or an error that wraps ErrUnsupported and says why not. Keys may not
// contain maps, whose order custom encoders do not fix, floats, where equal numbers can have different bytes (0 and -0)
// and unequal ones compare as equal never (NaN), or values of an open interface type, which can hold either.
func KeySafe[T any]() error {
	t := reflect.TypeFor[T]()
	var why string
	if isProto(t) {
		var zero T
		why = unsafeMessage(any(zero).(proto.Message).ProtoReflect().Descriptor(), nil)
	} else {
		why = unsafeKey(t, nil)
	}
	if why != "" {
		return fmt.Errorf("codec: %v as a key: contains %s: %w", t, why, ErrUnsupported)
	}
	return nil
}

// unsafeKey names what makes t unfit, or returns "". open holds the structs being looked at.
func unsafeKey(t reflect.Type, open []reflect.Type) string {
	if marshalsItself(t) {
		return ""
	}
	switch t.Kind() {
	case reflect.Map:
		return "a map"
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return "a float"
	case reflect.Interface:
		return "an interface"
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return t.String()
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return unsafeKey(t.Elem(), open)
	case reflect.Struct:
		if slices.Contains(open, t) {
			return ""
		}
		open = append(open, t)
		for _, f := range jsonFields(t, nil) {
			if why := unsafeKey(f.t, open); why != "" {
				return why
			}
		}
	}
	return ""
}

func unsafeMessage(d protoreflect.MessageDescriptor, open []protoreflect.FullName) string {
	if slices.Contains(open, d.FullName()) {
		return ""
	}
	open = append(open, d.FullName())
	fields := d.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			return "a map"
		case f.Kind() == protoreflect.FloatKind, f.Kind() == protoreflect.DoubleKind:
			return "a float"
		case f.Message() != nil:
			if why := unsafeMessage(f.Message(), open); why != "" {
				return why
			}
		}
	}
	return ""
}
