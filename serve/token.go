package serve

import (
	"encoding/base64"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/tidemark/tidemark/internal/wire"
	"github.com/tidemark/tidemark/query"
)

// Tokens are base64url, without padding, of
//
//	version    1 byte, 1
//	kind       1 byte: 'p' of a page, 'w' of a watch
//	question   8 bytes, hash of what was asked
//	commits    uvarint count, then per partition: uvarint partition, uvarint commit; by partition
//	partition  uvarint, only in page tokens: the one to read next
//	begun      1 byte, only in page tokens: 1 if rows of it were read, then follows
//	after      uvarint length and bytes: the last row read
//	sum        4 bytes, CRC-32C of all before
//
// The sum finds damage, not forgery: a token says where to read on, and gives access to nothing.
const (
	tokenVersion = 1
	pageKind     = 'p'
	watchKind    = 'w'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// commits are the numbers of commits by partition.
type commits map[int32]uint64

// pageToken says where the next page begins, and what the pages before were read from.
type pageToken struct {
	question  uint64
	read      commits
	partition int32
	begun     bool
	after     []byte
}

// watchToken says what a watch has told.
type watchToken struct {
	question uint64
	told     commits
}

func header(kind byte, question uint64, c commits) []byte {
	b := []byte{tokenVersion, kind}
	b = wire.AppendUint64(b, question)
	b = wire.AppendUvarint(b, uint64(len(c)))
	for _, p := range sortedKeys(c) {
		b = wire.AppendUvarint(b, uint64(p))
		b = wire.AppendUvarint(b, c[p])
	}
	return b
}

func seal(b []byte) string {
	sum := crc32.Checksum(b, castagnoli)
	b = append(b, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	return base64.RawURLEncoding.EncodeToString(b)
}

func (t *pageToken) String() string {
	b := header(pageKind, t.question, t.read)
	b = wire.AppendUvarint(b, uint64(t.partition))
	if !t.begun {
		return seal(append(b, 0))
	}
	return seal(wire.AppendString(append(b, 1), t.after))
}

func (t *watchToken) String() string { return seal(header(watchKind, t.question, t.told)) }

// open checks a token and returns a reader behind its header.
func open(text string, kind byte) (r *wire.Reader, question uint64, c commits, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 6 || strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return nil, 0, nil, false
	}
	body := b[:len(b)-4]
	sum := crc32.Checksum(body, castagnoli)
	if !slices.Equal(b[len(b)-4:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}) {
		return nil, 0, nil, false
	}
	r = wire.NewReader(body)
	if r.Byte() != tokenVersion || r.Byte() != kind {
		return nil, 0, nil, false
	}
	question = r.Uint64()
	n := r.Count(2)
	c = make(commits, n)
	last := int32(-1)
	for range n {
		p := r.Int32()
		if p <= last && r.Err() == nil {
			return nil, 0, nil, false // in order, and none twice: one token has one text
		}
		last = p
		c[p] = r.Uvarint()
	}
	return r, question, c, r.Err() == nil
}

func parsePageToken(text string) (*pageToken, error) {
	bad := query.Errorf(query.TokenMalformed, "the page token was not made by this API, or is damaged")
	r, question, c, ok := open(text, pageKind)
	if !ok {
		return nil, bad
	}
	t := &pageToken{question: question, read: c, partition: r.Int32()}
	switch r.Byte() {
	case 0:
	case 1:
		t.begun = true
		t.after = append([]byte{}, r.Bytes(r.Count(1))...)
	default:
		return nil, bad
	}
	if r.Err() != nil || r.Len() > 0 {
		return nil, bad
	}
	return t, nil
}

func parseWatchToken(text string) (*watchToken, error) {
	r, question, c, ok := open(text, watchKind)
	if !ok || r.Len() > 0 {
		return nil, query.Errorf(query.TokenMalformed, "the watch token was not made by this API, or is damaged")
	}
	return &watchToken{question, c}, nil
}

// position is what an answer about a task must reflect so as not to be older than a token.
func (c commits) position(t query.Task) query.Position {
	seq := c[t.Partition]
	if seq == 0 {
		return nil
	}
	return query.Position{{Name: t.Sub, Partition: t.Partition, Commit: true, Number: int64(seq)}}
}
