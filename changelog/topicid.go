package changelog

import "encoding/base64"

// FormatTopicID returns a topic id as Kafka's tools print it: URL-safe base64
// without padding.
func FormatTopicID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }
