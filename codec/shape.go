package codec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// shapeOf describes how encoding/json writes a type, in terms of JSON: integers of every width are "int", and the order
// of fields does not matter, because a change of either leaves old bytes readable.
func shapeOf(t reflect.Type) (string, error) {
	var s shaper
	if err := s.walk(t); err != nil {
		return "", fmt.Errorf("codec: %v: %w", t, err)
	}
	return s.b.String(), nil
}

type shaper struct {
	b    strings.Builder
	open []reflect.Type // the structs being described, outermost first: a recursive type refers back by depth
}

func (s *shaper) walk(t reflect.Type) error {
	if t == reflect.TypeFor[time.Duration]() {
		s.b.WriteString("int")
		return nil
	}
	if marshalsItself(t) {
		s.b.WriteString("self:" + t.String())
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		s.b.WriteString("string")
	case reflect.Bool:
		s.b.WriteString("bool")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		s.b.WriteString("int")
	case reflect.Float32, reflect.Float64:
		s.b.WriteString("float")
	case reflect.Pointer:
		return s.walk(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			s.b.WriteString("bytes")
			return nil
		}
		return s.wrap("[", t.Elem(), "]")
	case reflect.Map:
		s.b.WriteString("map[")
		if err := s.walk(t.Key()); err != nil {
			return err
		}
		return s.wrap("]", t.Elem(), "")
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("interface %v cannot be decoded: %w", t, ErrUnsupported)
		}
		s.b.WriteString("any")
	case reflect.Struct:
		return s.object(t)
	default:
		return fmt.Errorf("%v cannot be stored: %w", t, ErrUnsupported)
	}
	return nil
}

func (s *shaper) wrap(before string, t reflect.Type, after string) error {
	s.b.WriteString(before)
	err := s.walk(t)
	s.b.WriteString(after)
	return err
}

func (s *shaper) object(t reflect.Type) error {
	if i := slices.Index(s.open, t); i >= 0 {
		fmt.Fprintf(&s.b, "^%d", i)
		return nil
	}
	s.open = append(s.open, t)
	defer func() { s.open = s.open[:len(s.open)-1] }()
	fields := jsonFields(t, nil)
	if len(fields) == 0 && t.NumField() > 0 {
		return fmt.Errorf("all fields of %v are unexported or left out and would be lost: %w", t, ErrUnsupported)
	}
	s.b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			s.b.WriteByte(',')
		}
		s.b.WriteString(f.name)
		s.b.WriteByte(':')
		if err := s.walk(f.t); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	s.b.WriteByte('}')
	return nil
}

type jsonField struct {
	name string
	t    reflect.Type
}

// jsonFields lists the members encoding/json writes for a struct, by name. Embedded structs without a name of their own
// are inlined; outer holds the ones around t, since they may embed each other.
func jsonFields(t reflect.Type, outer []reflect.Type) []jsonField {
	var fields []jsonField
	outer = append(outer, t)
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		inline := f.Anonymous && name == "" || slices.Contains(strings.Split(options, ","), "inline")
		if inline && inner.Kind() == reflect.Struct && !slices.Contains(outer, inner) && !marshalsItself(f.Type) {
			fields = append(fields, jsonFields(inner, outer)...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name = strings.Trim(name, "'"); name == "" {
			name = f.Name
		}
		ft := f.Type
		if slices.Contains(strings.Split(options, ","), "string") {
			ft = reflect.TypeFor[string]()
		}
		fields = append(fields, jsonField{name, ft})
	}
	slices.SortFunc(fields, func(a, b jsonField) int { return strings.Compare(a.name, b.name) })
	return fields
}
