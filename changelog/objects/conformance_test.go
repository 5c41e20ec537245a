package objects_test

import (
	"context"
	"io"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/objects/objectstest"
)

func TestMem(t *testing.T) {
	objectstest.Run(t, func(*testing.T) objects.Store { return objects.NewMem() })
}

func newDir(t *testing.T) *objects.Dir {
	t.Helper()
	d, err := objects.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDir(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objects.Store { return newDir(t) })
}

// The wrappers, left alone, change nothing.
func TestWrappers(t *testing.T) {
	t.Run("Faults", func(t *testing.T) {
		objectstest.Run(t, func(*testing.T) objects.Store {
			return objects.WithFaults(objects.NewMem(), nil, func(objects.Op) objects.Fault { return objects.Fault{} })
		})
	})
	t.Run("Limit", func(t *testing.T) {
		objectstest.Run(t, func(t *testing.T) objects.Store { return objects.Limit(newDir(t), 1<<40, nil) })
	})
}

func read(ctx context.Context, s objects.Store, key string) (string, error) {
	r, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
