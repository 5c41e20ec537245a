package pebblestore

import (
	"fmt"
	"path/filepath"
	"strings"
)

// ownPrefix begins the names of all files this package adds to those of Pebble.
const ownPrefix = "tidemark-"

// checkName accepts the name of a file of a snapshot. It comes from outside and must not lead out of the directory, nor
// stand for a file that has a meaning here.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || name == "LOCK" || strings.HasPrefix(name, ownPrefix) ||
		strings.ContainsAny(name, "/\\ \t\r\n\x00") || name != filepath.Base(name) {
		return fmt.Errorf("illegal file name %q", name)
	}
	return nil
}

func isTableName(name string) bool { return strings.HasSuffix(name, ".sst") }
