package kafkatest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/internal/kafkatest"
)

// recorder stands for a test and notes how it ends.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.end = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.end = "skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestSharedWithoutBroker(t *testing.T) {
	for _, tt := range []struct{ kafka, noKafka, addr, end string }{
		{kafka: "127.0.0.1:1", addr: "127.0.0.1:1"},
		{end: "failed: kafkatest: TIDEMARK_KAFKA is not set"},
		{noKafka: "true", end: "failed: kafkatest: TIDEMARK_KAFKA is not set"},
		{noKafka: "1", end: "skipped: SKIPPED"},
		{kafka: "127.0.0.1:1", noKafka: "1", end: "skipped: SKIPPED"},
	} {
		t.Setenv(kafkatest.Env, tt.kafka)
		t.Setenv(kafkatest.NoKafkaEnv, tt.noKafka)
		r := &recorder{}
		var addr string
		done := make(chan struct{})
		go func() {
			defer close(done)
			addr = kafkatest.Shared(r)
		}()
		<-done
		if addr != tt.addr || !strings.HasPrefix(r.end, tt.end) || (tt.end == "") != (r.end == "") {
			t.Errorf("%+v: address %q, %s", tt, addr, r.end)
		}
	}
}
