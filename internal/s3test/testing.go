package s3test

import (
	"os"
	"testing"
)

// NoS3Env names the variable that, set to 1 by hand, skips the tests that need a real server.
const NoS3Env = "TIDEMARK_NO_S3"

// New starts a server of the test's own and stops it at the end of the test. Options.Dir defaults to a temporary directory. Where
// the server is not installed the test fails; it is skipped only when TIDEMARK_NO_S3=1 says so. When the test fails, the server's
// log is shown.
func New(tb testing.TB, o Options) *Server {
	tb.Helper()
	if os.Getenv(NoS3Env) == "1" {
		tb.Skipf("SKIPPED: %s=1: this test needs a real S3 server and did NOT run", NoS3Env)
	}
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	s, err := Start(tb.Context(), o)
	if err != nil {
		tb.Fatalf("%v\nRun ./test, or skip such tests with %s=1", err, NoS3Env)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Logf("log of the S3 server:\n%s", s.Log())
		}
	})
	return s
}
