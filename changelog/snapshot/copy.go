package snapshot

import (
	"context"
	"io"
)

// copyContext copies until the source ends, or the context does. About size bytes are expected.
func copyContext(ctx context.Context, dst io.Writer, src io.Reader, size int64) (int64, error) {
	buf := make([]byte, min(size, 256<<10)+1)
	var total int64
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
