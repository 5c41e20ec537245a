package objects

import (
	"bytes"
	"context"
	"io"
)

// copyBody writes the whole body to dst and nothing else: a source that holds less than it says is an error, since half
// an object must not become one. It gives up between blocks when the context has ended.
func copyBody(ctx context.Context, dst io.Writer, body *io.SectionReader) error {
	const block = 256 << 10
	buf := make([]byte, min(block, body.Size()))
	for at := int64(0); at < body.Size(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := buf[:min(int64(len(buf)), body.Size()-at)]
		n, err := body.ReadAt(p, at)
		if n < len(p) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := dst.Write(p); err != nil {
			return err
		}
		at += int64(n)
	}
	return ctx.Err()
}

// readBody returns the bytes of a body.
func readBody(ctx context.Context, body *io.SectionReader) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(body.Size()))
	if err := copyBody(ctx, &b, body); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Bytes returns b as the body of an object.
func Bytes(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}
