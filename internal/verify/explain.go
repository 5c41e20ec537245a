package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An explanation is a warning or error that a fault may cause. Everything else in a child's log is a finding.
type explanation struct {
	faults  []string // of the broker; "any" for those of instances, which every run has
	message string   // beginning of the message
	error   string   // pattern the error must match; empty: any
	why     string
}

const lostConnection = `connection refused|connection reset|broken pipe|EOF|i/o timeout|use of closed|unable to dial|broker closed|deadline exceeded|context canceled`

// explanations is the list. A fault that is not in it has no excuse.
var explanations = []explanation{
	{[]string{"any"}, "revoked tasks did not finish in time", "", "an instance was frozen in its revoke callback"},
	{[]string{"any"}, "fetch error", `unable to join group session|` + lostConnection, "the session of a frozen instance is over"},
	{[]string{"any"}, "task opens again", `UNSTABLE_OFFSET_COMMIT|pending|` + lostConnection + `|REQUEST_TIMED_OUT|COORDINATOR|UNKNOWN_SERVER`, "an instance died with a commit pending, or was frozen while opening"},
	{[]string{"any"}, "look for open transactions", lostConnection, "an instance was frozen longer than its requests wait"},
	{[]string{"any"}, "fence", lostConnection, "an instance was frozen longer than its requests wait"},
	{[]string{"any"}, "open transaction of this producer without its end", "", "an instance was frozen while the broker wrote the markers"},
	{[]string{"any"}, "transaction is open for half of its time-out", "", "an instance was frozen, or waits for one that was"},
	{[]string{"any"}, "last commits did not finish in time", "", "an instance was told to stop when its session was over"},
	{[]string{"any"}, "purge", lostConnection + `|UNKNOWN_TOPIC|OFFSET_OUT_OF_RANGE`, "an instance was frozen longer than its requests wait"},
	{[]string{"any"}, "record sent to the dead-letter topic", `unexpected EOF`, "an event that cannot be decoded, of which the checker has a list"},
	{[]string{"kill", "pause", "both"}, "fetch error", "", "the broker did not answer, or has no leaders yet"},
	{[]string{"kill", "pause", "both"}, "task opens again", "", "the broker did not answer"},
	{[]string{"kill", "pause", "both"}, "look for open transactions", "", "the broker did not answer"},
	{[]string{"kill", "pause", "both"}, "fence", "", "the broker did not answer"},
	{[]string{"kill", "pause", "both"}, "purge", "", "the broker did not answer"},
	{[]string{"kill", "pause", "both"}, "last stable offset stands still", "", "a transaction waits for the broker to come back"},
	{[]string{"kill", "pause", "both"}, "transaction outcome stays unknown", "", "the broker was away for longer than the bound"},
}

// numbers makes lines that differ in numbers alone equal.
var numbers = regexp.MustCompile(`[0-9]+`)

// explain goes through the logs of all children and prints what nothing explains, each kind once.
func (c *chaosRun) explain() (int, error) {
	n := 0
	seen := make(map[string]bool)
	for _, i := range c.s.all {
		entries, err := i.entries()
		if err != nil {
			return n, err
		}
		for _, e := range entries {
			if e.Level == "info" || e.Level == "debug" || explained(c.o.Fault, e) {
				continue
			}
			n++
			if k := numbers.ReplaceAllString(e.Level+e.Msg+e.Error, "0"); !seen[k] {
				seen[k] = true
				fmt.Printf("  unexplained, %s: %s\n", i.spec.Name, e.line)
			}
		}
	}
	return n, nil
}

func explained(fault string, e entry) bool {
	return slices.ContainsFunc(explanations, func(x explanation) bool {
		if x.faults[0] != "any" && !slices.Contains(x.faults, fault) || !strings.HasPrefix(e.Msg, x.message) {
			return false
		}
		if x.error == "" {
			return true
		}
		ok, err := regexp.MatchString(x.error, e.Error)
		return ok && err == nil
	})
}
