package pebblestore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemark/tidemark/store"
)

// Two files describe a directory that is not complete. One says what belongs into it; it is there before the first chunk
// and goes when the last file is verified, and that makes the directory an ordinary one.
//
//	tidemark-lazy 1
//	identity "app/sub/3/manifest/..."
//	chunk 262144
//	file 000012.sst 1048576 <sha256>
//	end 12345678                          crc32c of the lines before
//
// The other one says which chunks of the files with partPrefix have been fetched and made durable. Everything may be
// missing from it but nothing too much, so a damaged one counts for none.
//
//	tidemark-chunks 1
//	file 000012.sst 0f                    a bit per chunk, the lowest one first
//	end 12345678
//
// A file with its own name is complete, whatever these two say.
const (
	lazyStateName   = ownPrefix + "lazy"
	lazyStateTitle  = "tidemark-lazy 1\n"
	lazyChunksName  = ownPrefix + "chunks"
	lazyChunksTitle = "tidemark-chunks 1\n"
	partPrefix      = ownPrefix + "part-"
)

// lazyState is the content of the first file.
type lazyState struct {
	identity string
	chunk    int64 // bytes
	files    []LazyFile
}

func (s *lazyState) encode() []byte {
	out := fmt.Appendf([]byte(lazyStateTitle), "identity %q\nchunk %d\n", s.identity, s.chunk)
	for _, f := range s.files {
		out = fmt.Appendf(out, "file %s %d %x\n", f.Name, f.Size, f.Sum)
	}
	return append(out, sealEnd(out)...)
}

// readLazyState returns nil if the directory has no such file.
func readLazyState(fs *FS, dir string) (*lazyState, error) {
	b, err := fs.ReadFile(filepath.Join(dir, lazyStateName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	s, err := decodeLazyState(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", store.ErrCorrupt, lazyStateName, err)
	}
	return s, nil
}

// body checks title and sum and returns the lines between.
func body(b []byte, title string) ([]string, error) {
	text := string(b)
	at := strings.LastIndex(text, "end ")
	if at < len(title) || text[:len(title)] != title {
		return nil, errors.New("not a file of this version")
	}
	if text[at:] != sealEnd(b[:at]) {
		return nil, errors.New("sum does not match")
	}
	return strings.Split(strings.TrimSuffix(text[len(title):at], "\n"), "\n"), nil
}

func decodeLazyState(b []byte) (*lazyState, error) {
	lines, err := body(b, lazyStateTitle)
	if err != nil {
		return nil, err
	}
	s := &lazyState{}
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "identity":
			s.identity, err = strconv.Unquote(rest)
		case "chunk":
			s.chunk, err = strconv.ParseInt(rest, 10, 64)
		case "file":
			var f LazyFile
			f, err = decodeFile(rest)
			s.files = append(s.files, f)
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
	}
	if s.identity == "" || s.chunk <= 0 {
		return nil, errors.New("no identity or no chunk size")
	}
	return s, nil
}

func decodeFile(line string) (LazyFile, error) {
	var f LazyFile
	fields := strings.Split(line, " ")
	if len(fields) != 3 {
		return f, errors.New("not three fields")
	}
	size, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return f, err
	}
	sum, err := hex.DecodeString(fields[2])
	if err != nil || len(sum) != len(f.Sum) || size <= 0 || checkName(fields[0]) != nil || !isTableName(fields[0]) {
		return f, errors.New("illegal file")
	}
	return LazyFile{Name: fields[0], Size: size, Sum: [32]byte(sum)}, nil
}

// bitmap has a bit per chunk.
type bitmap []byte

func newBitmap(bits int) bitmap { return make(bitmap, (bits+7)/8) }
func (b bitmap) has(i int) bool { return b[i/8]&(1<<(i%8)) != 0 }
func (b bitmap) set(i int)      { b[i/8] |= 1 << (i % 8) }
func (b bitmap) clear(i int)    { b[i/8] &^= 1 << (i % 8) }
func encodeChunks(files []*remote) []byte {
	out := []byte(lazyChunksTitle)
	for _, r := range files {
		out = fmt.Appendf(out, "file %s %x\n", r.Name, []byte(r.saved))
	}
	return append(out, sealEnd(out)...)
}

// readChunks returns the bitmaps by name, none if the file is missing or damaged.
func readChunks(fs *FS, dir string) (map[string]bitmap, error) {
	b, err := fs.ReadFile(filepath.Join(dir, lazyChunksName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines, err := body(b, lazyChunksTitle)
	if err != nil {
		return nil, nil
	}
	chunks := map[string]bitmap{}
	for _, line := range lines {
		fields := strings.Split(line, " ")
		if len(fields) != 3 || fields[0] != "file" {
			continue
		}
		if bits, err := hex.DecodeString(fields[2]); err == nil {
			chunks[fields[1]] = bits
		}
	}
	return chunks, nil
}
