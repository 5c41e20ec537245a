package s3test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tidemark/tidemark/internal/kafkatest"
)

// The server is fixed, for the same behaviour everywhere.
const (
	program = "github.com/versity/versitygw/cmd/versitygw"
	version = "v1.8.0"
)

// path returns where the server is, or will be, installed: beside the broker's jars.
func path() (string, error) {
	cache, err := kafkatest.CacheDir()
	if err != nil {
		return "", fmt.Errorf("s3test: %w", err)
	}
	return filepath.Join(cache, "versitygw-"+version, "versitygw"), nil
}

// Install makes sure that the server is in the cache and returns its path. A cold installation downloads and compiles for some
// minutes. Concurrent installations do not disturb each other.
func Install(ctx context.Context) (string, error) {
	name, err := path()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	cache := filepath.Dir(filepath.Dir(name))
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("s3test: install: %w", err)
	}
	// The directory gets its name when it is complete.
	tmp, err := os.MkdirTemp(cache, "install-")
	if err != nil {
		return "", fmt.Errorf("s3test: install: %w", err)
	}
	defer os.RemoveAll(tmp)
	bin := filepath.Join(tmp, "bin")
	cmd := exec.CommandContext(ctx, "go", "install", program+"@"+version)
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("s3test: install %s@%s: %w\n%s", program, version, err, out)
	}
	if err := os.Rename(bin, filepath.Dir(name)); err != nil {
		if _, other := os.Stat(name); other != nil {
			return "", fmt.Errorf("s3test: install: %w", err)
		}
	}
	return name, nil
}
