package engine

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
)

// stateHeader returns the headers of a changelog record that carries more than its value.
func (w *worker) stateHeader(value []byte) []kgo.RecordHeader {
	h := w.newHeaders(1)
	h[0] = kgo.RecordHeader{Key: changelog.StateHeader, Value: value}
	return h
}
