package s3

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/objects/objectstest"
	"github.com/tidemark/tidemark/internal/s3test"
)

func TestFake(t *testing.T) {
	for name, set := range map[string]func(*fake, *Store){
		"Plain":     func(*fake, *Store) {},
		"Small":     func(f *fake, s *Store) { f.page, s.opts.Prefix = 2, "some/where" },
		"Multipart": func(_ *fake, s *Store) { s.single, s.opts.PartBytes = 1000, 7000 },
	} {
		t.Run(name, func(t *testing.T) {
			objectstest.Run(t, func(t *testing.T) objects.Store {
				f := newFake(t)
				s, _ := storeAt(t, f.URL, Options{})
				set(f, s)
				return s
			})
		})
	}
}

// realStore returns a store in a bucket of its own.
func realStore(t *testing.T, server *s3test.Server, o Options) *Store {
	t.Helper()
	o.Bucket = fmt.Sprintf("bucket-%d", len(buckets(t, server)))
	check(t, server.CreateBucket(o.Bucket))
	o.AccessKey, o.SecretKey, o.Region = s3test.AccessKey, s3test.SecretKey, s3test.Region
	s, _ := storeAt(t, server.Endpoint(), o)
	return s
}

func buckets(t *testing.T, server *s3test.Server) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(server.DataDir())
	check(t, err)
	return entries
}

// The real server.
func TestServer(t *testing.T) {
	server := s3test.New(t, s3test.Options{})
	for name, o := range map[string]Options{"Plain": {}, "Prefix": {Prefix: "some/where", Checksums: "required"}} {
		t.Run(name, func(t *testing.T) {
			objectstest.Run(t, func(t *testing.T) objects.Store { return realStore(t, server, o) })
		})
	}
	t.Run("Parts", func(t *testing.T) {
		s := realStore(t, server, Options{PartBytes: minPart})
		s.single = minPart
		content := pattern(2*minPart + 12_345)
		for range 2 { // the second replaces the first
			check(t, s.Put(t.Context(), "a/large", objects.Bytes(content)))
			b, err := read(t.Context(), s, "a/large", 0, -1)
			if err != nil || !bytes.Equal(b, content) {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
		}
		b, err := read(t.Context(), s, "a/large", minPart-10, 20)
		if err != nil || !bytes.Equal(b, content[minPart-10:minPart+10]) {
			t.Errorf("over a boundary of parts: %d bytes, %v", len(b), err)
		}
	})
	t.Run("Pages", func(t *testing.T) {
		s := realStore(t, server, Options{})
		var want []string
		for i := range 1100 {
			want = append(want, fmt.Sprintf("d/%04d", i))
		}
		// Files put into the directory are objects without metadata.
		dir := filepath.Join(server.DataDir(), s.opts.Bucket, "d")
		check(t, os.Mkdir(dir, 0o755))
		for _, key := range want {
			check(t, os.WriteFile(filepath.Join(dir, filepath.Base(key)), nil, 0o644))
		}
		if got := list(t, s, "d/"); !slices.Equal(got, want) {
			t.Fatalf("%d listed, want %d", len(got), len(want))
		}
		check(t, s.Delete(t.Context(), want...))
		if got := list(t, s, ""); len(got) != 0 {
			t.Errorf("%d left", len(got))
		}
	})
	t.Run("Killed", func(t *testing.T) { testKilled(t, server) })
}

// A server that dies and comes back is an outage that the retries bridge.
func testKilled(t *testing.T, server *s3test.Server) {
	s := realStore(t, server, Options{})
	content := pattern(3 << 20)
	check(t, s.Put(t.Context(), "a", objects.Bytes(content)))
	r, err := s.Get(t.Context(), "a", 0, -1)
	check(t, err)
	first := make([]byte, 100_000)
	_, err = r.Read(first[:1])
	check(t, err)
	check(t, server.Kill())
	back := make(chan error, 1)
	go func() { back <- server.Restart(t.Context()) }()
	var rest bytes.Buffer
	s.clk = realPauses{}
	if _, err := rest.ReadFrom(r); err != nil {
		t.Errorf("read over a restart: %v", err)
	}
	check(t, r.Close())
	if !bytes.Equal(rest.Bytes(), content[1:]) {
		t.Errorf("%d bytes after the restart, want %d", rest.Len(), len(content)-1)
	}
	check(t, <-back)
	check(t, s.Put(t.Context(), "b", objects.Bytes(content)))
	b, err := read(t.Context(), s, "b", 0, -1)
	if err != nil || !bytes.Equal(b, content) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func list(t *testing.T, s objects.Store, prefix string) []string {
	t.Helper()
	var keys []string
	check(t, s.List(t.Context(), prefix, func(i objects.Info) error {
		keys = append(keys, i.Key)
		return nil
	}))
	return keys
}
