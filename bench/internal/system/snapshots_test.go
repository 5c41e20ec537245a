package system

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
)

func TestStored(t *testing.T) {
	s := snapshots{counts: &counted{Store: objects.NewMem(), tables: map[string]bool{}}}
	ctx := context.Background()
	for _, put := range []struct {
		key  string
		size int
	}{{"app/sub/0/sst/aa", 100}, {"app/sub/0/manifest/1-bb", 7}, {"app/sub/0/sst/aa", 100}, {"app/sub/0/sst/cc", 10}} {
		if err := s.counts.Put(ctx, put.key, objects.Bytes(make([]byte, put.size))); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.counts.Get(ctx, "app/sub/0/sst/aa", 10, 40)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.counts.Delete(ctx, "app/sub/0/sst/aa", "app/sub/0/sst/cc"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s.print(&out)
	e, ok := ParseEvent(strings.TrimSuffix(out.String(), "\n"))
	if !ok {
		t.Fatalf("no event: %q", out.String())
	}
	want := Stored{Gets: 1, GetBytes: 40, Puts: 4, PutBytes: 217, TableBytes: 110, Deletes: 2}
	if got, ok := ParseStored(e); !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestOpenStore(t *testing.T) {
	for name, good := range map[string]bool{"dir:" + t.TempDir(): true, "s3:bench@http://127.0.0.1:1": true, "s3:bench": false, "ftp:x": false} {
		if _, err := openStore(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
