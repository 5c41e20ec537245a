package topology

import (
	"fmt"
	"reflect"

	"github.com/tidemark/tidemark/codec"
)

// StateVersion says which version the values of an aggregate or of a custom processor's store have, from 1 to 255; without
// it they have version 0. A version is needed when the values change their type, their codec or their meaning while there
// is state to keep; Migrate says how each earlier version is read.
//
// Values of version 0 are stored as they always were, bytes of Kafka Streams included. From version 1 on they are
// stored in an envelope that names the version (see codec.Versioned), which only Tidemark reads; what leaves through a
// topic of yours is never in one.
func StateVersion(n int) Option {
	return option{"StateVersion", func(s *options) { s.version = n }}
}

// Migrate makes values of the state version from into those of the next one. The last Migrate leads to the type the
// operator stores, and without the first ones versions that nobody has any more can be forgotten. old is the codec the
// version was written with; nil means the default one.
//
//	in.Aggregate("totals", topology.Fold(add), topology.StateVersion(2),
//		topology.Migrate(0, nil, func(clicks int64) (TotalsV1, error) { return TotalsV1{Clicks: clicks}, nil }),
//		topology.Migrate(1, nil, func(t TotalsV1) (Totals, error) { return Totals{Clicks: t.Clicks}, nil }))
//
// Rows are migrated when they are read and written back in the present version when they change; the changelog holds
// several versions for as long as there are rows that do not. A function must give equal results for equal values. Its
// error ends Run with the operator's name. A build without the version is refused from then on, even if no row has it.
func Migrate[Old, New any](from int, old codec.Codec[Old], f func(Old) (New, error)) Option {
	e := encode(old)
	m := migration{from: from, in: reflect.TypeFor[Old](), out: reflect.TypeFor[New](), missing: f == nil}
	m.open = func() (read, error) {
		c, err := e.get()
		if err != nil {
			return read{}, err
		}
		a, known := c.(codec.Aliasing)
		return read{
			schema: c.Schema(), json: c.JSON, aliases: !known || a.Aliases(),
			decode: func(b []byte) (any, error) { return c.Decode(b) },
		}, nil
	}
	m.apply = func(v any) (any, error) {
		was, _ := v.(Old) // an interface type may hold nothing
		return f(was)
	}
	return option{"Migrate", func(s *options) { s.migrations = append(s.migrations, m) }}
}

// migration is a Migrate without its types.
type migration struct {
	from    int
	in, out reflect.Type
	missing bool
	open    func() (read, error)
	apply   func(any) (any, error)
}

// read is how bytes of an earlier version are read.
type read struct {
	schema  string
	json    func(dst, b []byte) ([]byte, error)
	decode  func(b []byte) (any, error)
	aliases bool
}

// version is what is known of the version of a store's values.
type version struct {
	describe func(*StoreShape)
	older    func() []string // schemas of what else the codec reads
}

// stored returns the encoding of the values a node keeps, which is v unless they have a version, and that.
func stored[T any](n *node, o options, v *encoding[T]) (*encoding[T], *version) {
	if o.version == 0 && len(o.migrations) == 0 {
		if o.given("StateVersion") {
			n.t.problems.node(n, "StateVersion(0): versions begin with 1")
		}
		return v, nil
	}
	by := checkMigrations(n, o, reflect.TypeFor[T]())
	n.checks = append(n.checks, func(p *problems) {
		for from, m := range by {
			if _, err := m.open(); err != nil {
				p.add(n.seq, n.name(), err, "no codec for the values of version %d", from)
			}
		}
	})
	wrapped := &encoding[T]{explicit: true, wrap: func() (codec.Codec[T], error) {
		inner, err := v.get()
		if err != nil {
			return nil, err
		}
		older := make(map[int]codec.Older[T])
		for from := range by {
			r, err := by[from].open()
			if err != nil {
				return nil, err
			}
			older[from] = codec.Older[T]{JSON: r.json, Aliases: r.aliases, Decode: func(b []byte) (T, error) {
				return migrate[T](by, from, o.version, r, b)
			}}
		}
		return codec.Versioned(inner, o.version, older), nil
	}}
	older := func() (list []OlderShape) {
		for from := o.version - 1; by[from].open != nil; from-- {
			if r, err := by[from].open(); err == nil {
				list = append(list, OlderShape{from, r.schema})
			}
		}
		return list
	}
	return wrapped, &version{
		describe: func(s *StoreShape) { s.Version, s.Value, s.Older = o.version, v.schema(), older() },
		older: func() (schemas []string) {
			for _, s := range older() {
				schemas = append(schemas, codec.VersionedSchema(s.Version, s.Value))
			}
			return schemas
		},
	}
}

// migrate reads bytes of an earlier version.
func migrate[T any](by map[int]migration, from, to int, r read, b []byte) (T, error) {
	var zero T
	v, err := r.decode(b)
	if err != nil {
		return zero, fmt.Errorf("topology: decode a value of state version %d: %w", from, err)
	}
	for at := from; at < to; at++ {
		if v, err = by[at].apply(v); err != nil {
			return zero, fmt.Errorf("topology: migrate a value of state version %d to %d: %w", at, at+1, err)
		}
	}
	out, _ := v.(T)
	return out, nil
}

// checkMigrations reports versions and migrations that do not fit together, and returns those that do by their version.
func checkMigrations(n *node, o options, stored reflect.Type) map[int]migration {
	bad := func(format string, args ...any) { n.t.problems.node(n, format, args...) }
	if o.version < 1 || o.version > codec.MaxVersion {
		bad("StateVersion(%d): from 1 to %d", o.version, codec.MaxVersion)
		return nil
	}
	by := make(map[int]migration)
	lowest := o.version
	for _, m := range o.migrations {
		switch _, twice := by[m.from]; {
		case m.missing:
			bad("Migrate(%d): the function is nil", m.from)
		case m.from < 0 || m.from >= o.version:
			bad("Migrate(%d): from a version below StateVersion(%d)", m.from, o.version)
		case twice:
			bad("Migrate(%d) is given twice", m.from)
		default:
			by[m.from] = m
			lowest = min(lowest, m.from)
		}
	}
	next := stored
	for from := o.version - 1; from >= lowest; from-- {
		m, ok := by[from]
		switch {
		case !ok:
			bad("Migrate(%d) is missing: earlier versions are read by way of it", from)
			return nil
		case m.out != next:
			bad("Migrate(%d) makes %v, version %d is %v", from, m.out, from+1, next)
			return nil
		}
		next = m.in
	}
	return by
}
