package kafkatest

import (
	"os"
	"testing"
)

// Env names the variable with the address of the broker that all tests of a run share. ./test sets
// it; by hand: TIDEMARK_KAFKA=$(go run ./tools/kafka up).
const Env = "TIDEMARK_KAFKA"

// NoKafkaEnv names the variable that, set to 1 by hand, skips the tests that need a real broker.
const NoKafkaEnv = "TIDEMARK_NO_KAFKA"

// Shared returns the address of the broker that the tests of this run share. Tests must use topic,
// group and transactional names of their own. Without the broker the test fails; it is skipped only
// when TIDEMARK_NO_KAFKA=1 says so.
func Shared(tb testing.TB) string {
	tb.Helper()
	skipIfTold(tb)
	addr := os.Getenv(Env)
	if addr == "" {
		tb.Fatalf("kafkatest: %s is not set: this test needs a real broker. Run ./test, or %s=$(go run ./tools/kafka up) go test, or skip such tests with %s=1", Env, Env, NoKafkaEnv)
	}
	return addr
}

// New starts a broker of the test's own and stops it at the end of the test, for tests that break
// the broker. Options.Dir defaults to a temporary directory. When the test fails, the end of the
// broker's log is shown. It skips as Shared does.
func New(tb testing.TB, o Options) *Broker {
	tb.Helper()
	skipIfTold(tb)
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	b, err := Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Stop(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Logf("broker log:\n%s", b.LogTail(50))
		}
	})
	return b
}

// skipIfTold is the only place of the repository that skips a test.
func skipIfTold(tb testing.TB) {
	tb.Helper()
	if os.Getenv(NoKafkaEnv) == "1" {
		tb.Skipf("SKIPPED: %s=1: this test needs a real broker and did NOT run", NoKafkaEnv)
	}
}
