package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/changelog/objects"
)

// LocalFile is a file of a checkpoint.
type LocalFile struct {
	Name string
	Size int64 // bytes
}

// Checkpoint is a database standing still: files that do not change until the upload has returned.
type Checkpoint interface {
	// Files lists all files, in any order.
	Files() ([]LocalFile, error)
	// Open opens a file for reading, by several goroutines at once. The Closer is called when it is no longer read.
	Open(name string) (io.ReaderAt, io.Closer, error)
}

// Options are those of uploads and downloads.
type Options struct {
	// Parallel is how many files are moved at the same time. Default: 2 for uploads, 4 for downloads. An upload hashes on
	// as many processors.
	Parallel int
	// InlineBytes is the size up to which a file that is not a table lies inside the manifest. Default: 256 KiB.
	InlineBytes int64
	// Queue bounds the files of several downloads together, instead of Parallel. Default: none.
	Queue *Queue
	// Take is told that an upload has read n bytes of a file to learn its sum, and returns when it may go on. Default: no bound.
	Take func(ctx context.Context, n int64) error
}

const (
	uploadParallel   = 2
	downloadParallel = 4
	inlineBytes      = 256 << 10
)

// tableSuffix marks the files that never change once they are written; all others are small.
const tableSuffix = ".sst"

// Stats says what an upload has done, also one that failed.
type Stats struct {
	Files         int   // of the snapshot
	Bytes         int64 // of all of them
	Uploaded      int   // files put
	UploadedBytes int64
	HashedBytes   int64 // read to learn their sums
	ManifestBytes int64 // of the manifest, with the files inside
}

// Uploader makes snapshots. It keeps nothing between uploads and may be shared by tasks.
type Uploader struct {
	store objects.Store
	opts  Options
}

// New returns an uploader into a store.
func New(store objects.Store, o Options) *Uploader {
	if o.Parallel <= 0 {
		o.Parallel = uploadParallel
	}
	if o.InlineBytes <= 0 {
		o.InlineBytes = inlineBytes
	}
	return &Uploader{store, o}
}

// Upload copies a checkpoint and returns the reference that publishes it once a progress record carries it. The head says
// whose and which state it is; its Files are replaced. The retained manifests are those of the references that the newest
// committed progress record lists, as Load returned them: what they hold is not uploaded again.
//
// An upload that fails, or is broken off, leaves objects behind which Collect removes when they are old enough. So is a
// reference that no progress record carries: it must be committed within Grace of the beginning of its upload, or dropped.
//
// The steps: hash what has no known sum, put what no retained manifest holds, put the manifest.
func (u *Uploader) Upload(ctx context.Context, cp Checkpoint, head Manifest, retained []*Manifest, memo *Memo) (Ref, *Manifest, Stats, error) {
	m := head
	m.Version = Version
	up := &upload{u: u, cp: cp, m: &m, memo: memo}
	ref, err := up.run(ctx, retained)
	if err != nil {
		return Ref{}, nil, up.stats, fmt.Errorf("snapshot: upload %v at commit %d: %w", m.Task(), m.Seq, err)
	}
	return ref, &m, up.stats, nil
}

// upload is one Upload.
type upload struct {
	u     *Uploader
	cp    Checkpoint
	m     *Manifest
	memo  *Memo
	stats Stats
}

func (up *upload) run(ctx context.Context, retained []*Manifest) (Ref, error) {
	if err := up.list(); err != nil {
		return Ref{}, err
	}
	if err := up.sum(ctx); err != nil {
		return Ref{}, err
	}
	if err := up.files(ctx, retained); err != nil {
		return Ref{}, err
	}
	encoded, err := up.m.Append(nil)
	if err != nil {
		return Ref{}, err
	}
	if len(encoded) > maxManifest {
		return Ref{}, fmt.Errorf("%d files make a manifest of %d bytes, %d can be loaded", len(up.m.Files), len(encoded), maxManifest)
	}
	up.stats.ManifestBytes = int64(len(encoded))
	ref := Ref{Key: up.m.Task().manifest(up.m.Seq, encoded), Seq: up.m.Seq, Created: up.m.Created, Bytes: up.m.Bytes()}
	// Last, and not before every file is there: who finds a manifest finds what it names.
	if err := up.u.store.Put(ctx, ref.Key, objects.Bytes(encoded)); err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// list notes the names and sizes of the files, ascending.
func (up *upload) list() error {
	local, err := up.cp.Files()
	if err != nil {
		return err
	}
	names := make(map[string]bool, len(local))
	up.m.Files = make([]File, len(local))
	for i, f := range local {
		up.m.Files[i] = File{Name: f.Name, Size: f.Size}
		names[f.Name] = true
	}
	slices.SortFunc(up.m.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	up.memo.keep(names)
	up.stats.Files, up.stats.Bytes = len(local), up.m.Bytes()
	return up.m.check()
}

// sum fills in the sums, and the contents of small files.
func (up *upload) sum(ctx context.Context) error {
	var unknown []*File
	for i := range up.m.Files {
		f := &up.m.Files[i]
		if sum, ok := up.memo.get(f.Name, f.Size); ok && isTable(f.Name) {
			f.Sum = sum
			continue
		}
		unknown = append(unknown, f)
		up.stats.HashedBytes += f.Size
	}
	return parallel(ctx, up.u.opts.Parallel, len(unknown), func(ctx context.Context, i int) error {
		f := unknown[i]
		if !isTable(f.Name) && f.Size <= up.u.opts.InlineBytes {
			return up.inline(f)
		}
		if err := up.hash(ctx, f); err != nil {
			return err
		}
		if isTable(f.Name) {
			up.memo.put(f.Name, f.Size, f.Sum)
		}
		return nil
	})
}

func isTable(name string) bool { return strings.HasSuffix(name, tableSuffix) }

// read calls fn with the whole of a file.
func (up *upload) read(f *File, fn func(*io.SectionReader) error) error {
	r, c, err := up.cp.Open(f.Name)
	if err != nil {
		return err
	}
	return errors.Join(fn(io.NewSectionReader(r, 0, f.Size)), c.Close())
}

func (up *upload) inline(f *File) error {
	return up.read(f, func(r *io.SectionReader) error {
		f.Data = make([]byte, f.Size)
		if _, err := io.ReadFull(r, f.Data); err != nil {
			return fmt.Errorf("read %s: %w", f.Name, err)
		}
		f.Sum = sha256.Sum256(f.Data)
		return nil
	})
}

func (up *upload) hash(ctx context.Context, f *File) error {
	return up.read(f, func(r *io.SectionReader) error {
		h := sha256.New()
		n, err := copyContext(ctx, h, up.paced(ctx, r), f.Size)
		if err == nil && n != f.Size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.Name, err)
		}
		h.Sum(f.Sum[:0])
		return nil
	})
}

// paced bounds how fast a file is read.
func (up *upload) paced(ctx context.Context, r io.Reader) io.Reader {
	if up.u.opts.Take == nil {
		return r
	}
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if wait := up.u.opts.Take(ctx, int64(n)); wait != nil {
			return n, wait
		}
		return n, err
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// files puts every content that no retained manifest of this task holds.
func (up *upload) files(ctx context.Context, retained []*Manifest) error {
	there := make(map[string]bool)
	for _, m := range retained {
		for _, f := range m.Files {
			if f.Data == nil {
				there[m.Object(f)] = true
			}
		}
	}
	var missing []*File
	for i := range up.m.Files {
		f := &up.m.Files[i]
		if f.Data != nil {
			continue
		}
		// The key holds task and content: another task's files, or another file of the same name, do not match.
		if key := up.m.Object(*f); !there[key] {
			there[key] = true // two files of one content
			missing = append(missing, f)
		}
	}
	put := make([]bool, len(missing))
	err := parallel(ctx, up.u.opts.Parallel, len(missing), func(ctx context.Context, i int) error {
		f := missing[i]
		err := up.read(f, func(r *io.SectionReader) error { return up.u.store.Put(ctx, up.m.Object(*f), r) })
		put[i] = err == nil
		return err
	})
	for i, f := range missing {
		if put[i] {
			up.stats.Uploaded++
			up.stats.UploadedBytes += f.Size
		}
	}
	return err
}
