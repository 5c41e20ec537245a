package snapshot

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

// Damage of any object is found before anything counts, by Load or by Download, and says what it is.
func TestDamageIsFound(t *testing.T) {
	ctx := t.Context()
	d := newDatabase("1.sst", "one", "2.sst", strings.Repeat("two", 500), "MANIFEST", "m1")
	original := objects.NewMem()
	r, m, _ := mustUpload(t, original, d, 1, nil, nil)
	contents := make(map[string]string)
	for _, key := range keys(t, original) {
		b, err := fetch(ctx, original, key)
		check(t, err)
		contents[key] = string(b)
	}
	for _, key := range keys(t, original) {
		content := contents[key]
		for name, damaged := range map[string]string{
			"first byte": string(objects.Flip(0)([]byte(content))),
			"last byte":  string(objects.Flip(-1)([]byte(content))),
			"truncated":  content[:len(content)-1],
			"empty":      "",
			"longer":     content + "x",
			"other file": contents[m.Object(m.Files[0])] + contents[m.Object(m.Files[1])],
		} {
			s := objects.NewMem()
			for k, c := range contents {
				if k == key {
					c = damaged
				}
				check(t, s.Put(ctx, k, objects.Bytes([]byte(c))))
			}
			if _, err := restore(ctx, s, r); !errors.Is(err, ErrDamaged) || !strings.HasPrefix(err.Error(), "snapshot: ") {
				t.Errorf("%s, %s: %v", key, name, err)
			}
			// Putting it again mends it.
			_, _, _ = mustUpload(t, s, d, 1, nil, nil)
			wantRestored(t, s, r, d)
		}
		s := objects.NewMem()
		for k, c := range contents {
			if k != key {
				check(t, s.Put(ctx, k, objects.Bytes([]byte(c))))
			}
		}
		if _, err := restore(ctx, s, r); !errors.Is(err, objects.ErrNotFound) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s, missing: %v", key, err)
		}
	}
}

// Failures on the way are not damage: the same snapshot may be whole.
func TestFailuresAreNotDamage(t *testing.T) {
	ctx := t.Context()
	mem := objects.NewMem()
	r, _, _ := mustUpload(t, mem, newDatabase("1.sst", "one", "2.sst", "two"), 1, nil, nil)
	broken := errors.New("broken")
	for n := int64(1); n <= 3; n++ {
		for _, fault := range []objects.Fault{{Err: broken}, {Damage: objects.Cut(1), Reset: true}} {
			s := objects.WithFaults(mem, nil, func(op objects.Op) objects.Fault {
				if op.N == n {
					return fault
				}
				return objects.Fault{}
			})
			_, err := restore(ctx, s, r)
			if !errors.Is(err, broken) && !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrDamaged) || errors.Is(err, objects.ErrNotFound) {
				t.Errorf("operation %d: %v", n, err)
			}
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := restore(cancelled, mem, r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A target that fails fails the download.
func TestTargetFails(t *testing.T) {
	mem := objects.NewMem()
	_, m, _ := mustUpload(t, mem, newDatabase("1.sst", "one", "MANIFEST", "m"), 1, nil, nil)
	full := errors.New("disk full")
	for at := range 4 {
		err := Download(t.Context(), mem, m, TargetFunc(func(string) (Sink, error) {
			if at == 0 {
				return nil, full
			}
			return &brokenSink{at, full}, nil
		}), Options{})
		if !errors.Is(err, full) || errors.Is(err, ErrDamaged) {
			t.Errorf("failing at %d: %v", at, err)
		}
	}
}

type brokenSink struct {
	at  int
	err error
}

func (b *brokenSink) step(at int) error {
	if at == b.at {
		return b.err
	}
	return nil
}

func (b *brokenSink) Write(p []byte) (int, error) { return len(p), b.step(1) }
func (b *brokenSink) Sync() error                 { return b.step(2) }
func (b *brokenSink) Close() error                { return b.step(3) }

// Whoever can write to the bucket can put a manifest there; a reference names one by its content.
func TestLoadVerifiesByKey(t *testing.T) {
	ctx := t.Context()
	s := objects.NewMem()
	r, m, _ := mustUpload(t, s, newDatabase("1.sst", "one"), 5, nil, nil)
	forged := *m
	forged.Writer++
	check(t, s.Put(ctx, r.Key, objects.Bytes(encode(t, &forged))))
	if _, err := Load(ctx, s, r); !errors.Is(err, ErrDamaged) {
		t.Errorf("other bytes under its key: %v", err)
	}

	// A whole manifest under a key that is not its own.
	for name, other := range map[string]Manifest{"commit": head(6), "task": {App: "app", Sub: "orders", Partition: 4, Seq: 5}} {
		encoded := encode(t, &other)
		key := testTask.manifest(5, encoded)
		check(t, s.Put(ctx, key, objects.Bytes(encoded)))
		if _, err := Load(ctx, s, Ref{Key: key, Seq: 5}); !errors.Is(err, ErrDamaged) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	for _, bad := range []Ref{{}, {Key: m.Object(m.Files[0]), Seq: 5}, {Key: r.Key, Seq: 6}, {Key: "../" + r.Key, Seq: 5}} {
		if _, err := Load(ctx, s, bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v: %v", bad, err)
		}
	}

	// One from the future is whole.
	newer := encode(t, m)
	newer = sealed(append([]byte{Version + 1}, newer[1:len(newer)-4]...))
	key := testTask.manifest(5, newer)
	check(t, s.Put(ctx, key, objects.Bytes(newer)))
	_, err := Load(ctx, s, Ref{Key: key, Seq: 5})
	if ve, ok := errors.AsType[*VersionError](err); !ok || ve.Have != Version+1 || errors.Is(err, ErrDamaged) {
		t.Errorf("a newer version: %v", err)
	}
}
