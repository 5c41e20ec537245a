package serve

import (
	"strconv"
	"time"

	"github.com/tidemark/tidemark/query"
)

// parseTime reads a time of a question, RFC 3339 or ms since 1970. Empty is none.
func parseTime(field, text string) (ms int64, ok bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ms, true, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false, query.Errorf(query.InvalidRequest, "%s %.40q is no time: it is RFC 3339, as 2026-03-01T12:00:00Z, or milliseconds since 1970", field, text)
	}
	return t.UnixMilli(), true, nil
}
