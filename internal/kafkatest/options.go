package kafkatest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Profile chooses the settings for what a test does to the broker.
type Profile int

const (
	// Kill is for tests that kill the broker and start it again: its session with its own controller
	// lasts 3 s, so that a restarted broker is back in under ten. A pause beyond the session may get
	// the broker fenced by itself and damage transactions that end in that moment; use Stop for that.
	Kill Profile = iota
	// Stop is for tests that pause the broker (SIGSTOP): the session lasts 60 s. A broker that was
	// killed cannot come back in time; use Kill for that.
	Stop
	// Bench is for measurements: Kafka's default session and transaction back-off, 1 GiB of heap, the
	// default garbage collector and compilers.
	Bench
)

// ParseProfile returns the profile of that name: "kill", "stop" or "bench".
func ParseProfile(name string) (Profile, bool) {
	i := slices.Index([]string{"kill", "stop", "bench"}, name)
	return Profile(max(i, 0)), i >= 0
}

// Options says how the broker is started.
type Options struct {
	// Dir holds the broker's data, log and pid. Required. A directory that holds a broker's data
	// already is used as it is, with the ports it had if Port is 0.
	Dir string
	// Port is the client port on 127.0.0.1. Default 0: a free one.
	Port int
	// Profile is Kill by default.
	Profile Profile
	// TransactionVersion is the feature level that a new data directory is formatted with. Default 0:
	// the broker's own, which is 2.
	TransactionVersion int
	// Properties are broker settings that win over all others.
	Properties map[string]string
	// Detach lets the broker survive an interrupt from the terminal of the starting process.
	Detach bool
}

func (o Options) jvm() []string {
	if o.Profile == Bench {
		return []string{"-Xms1g", "-Xmx1g"}
	}
	// Starts fast and stays small.
	return []string{"-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
}

func (o Options) properties(template string, port, controller int, data string) string {
	text := strings.NewReplacer(
		"@PORT@", strconv.Itoa(port), "@CONTROLLER@", strconv.Itoa(controller), "@DATA@", data,
	).Replace(template)
	set := map[string]string{}
	if o.Profile != Bench {
		set["add.partitions.to.txn.retry.backoff.ms"] = "1"
		set["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = "500"
		set["broker.heartbeat.interval.ms"] = "500"
		set["broker.session.timeout.ms"] = "3000"
	}
	if o.Profile == Stop {
		set["broker.session.timeout.ms"] = "60000"
	}
	maps.Copy(set, o.Properties)
	var b strings.Builder
	b.WriteString(text)
	for _, k := range slices.Sorted(maps.Keys(set)) {
		b.WriteString(k + "=" + set[k] + "\n")
	}
	return b.String()
}
