package topology

import (
	"fmt"
	"strings"
)

const (
	// maxTopic is Kafka's limit for topic names.
	maxTopic = 249
	// maxID leaves room for the app id and the longest suffix.
	maxID = 180
)

// internalSuffixes end the names of an app's own topics that hold an id.
var internalSuffixes = [...]string{"-repartition", "-changelog", "-progress"}

// internalNames are the app's own topics without an id.
var internalNames = [...]string{"control", "late", "dead-letter"}

// badChars says what Kafka has against a topic name, "" for nothing.
func badChars(name string) string {
	switch name {
	case "":
		return "is empty"
	case ".", "..":
		return "is not a topic name"
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-' {
			return fmt.Sprintf("contains %q; topic names have letters, digits, '.', '_' and '-'", r)
		}
	}
	return ""
}

// badID says why an operator id cannot be used, "" if it can.
func badID(id string) string {
	if why := badChars(id); why != "" {
		return why
	}
	if len(id) > maxID {
		return fmt.Sprintf("is longer than %d bytes", maxID)
	}
	if generation(id) {
		return "begins like the generation of an app restored from a savepoint, g<number>-"
	}
	return ""
}

// generation reports whether an id begins with "g<digits>-", which follows the app id in topics of a later generation.
func generation(id string) bool {
	rest, ok := strings.CutPrefix(id, "g")
	digits := strings.TrimLeft(rest, "0123456789")
	return ok && len(digits) < len(rest) && (digits == "" || digits[0] == '-')
}

// badTopic says why a topic cannot be read or written, "" if it can.
func badTopic(topic string) string {
	if why := badChars(topic); why != "" {
		return why
	}
	if len(topic) > maxTopic {
		return fmt.Sprintf("is longer than %d bytes", maxTopic)
	}
	if strings.HasPrefix(topic, "__") {
		return "is reserved: names that begin with __ are Kafka's own"
	}
	for _, s := range internalSuffixes {
		if strings.HasSuffix(topic, s) {
			return "is reserved: names that end in " + s + " are internal topics of an app"
		}
	}
	return ""
}

// fold maps names to what Kafka takes them for: '.' and '_' are the same in its metric names, and it refuses a topic
// whose name collides that way.
func fold(name string) string { return strings.ReplaceAll(name, ".", "_") }

// CheckNames reports which names a plan cannot have under an app id: internal topics longer than Kafka allows, and
// topics of the user that the app would take for its own.
func CheckNames(p *Plan, app string) error {
	var errs problems
	if why := badChars(app); why != "" {
		errs.add(0, "app "+app, nil, "app id %q %s", app, why)
	}
	user := func(topic, operator string) {
		for _, s := range internalNames {
			if fold(topic) == fold(app+"-"+s) {
				errs.add(0, operator, nil, "topic %q is the app's own", topic)
			}
		}
	}
	internal := func(operator, id, suffix string) {
		if name := app + "-" + id + suffix; len(name) > maxTopic {
			errs.add(0, operator, nil, "internal topic %q is longer than %d bytes", name, maxTopic)
		}
	}
	for _, s := range p.Subs {
		internal(s.ID, s.ID, "-progress")
		for _, src := range s.Sources {
			if src.Topic != "" {
				user(src.Topic, kindSource+"("+src.Topic+")")
			} else {
				internal(src.Repartition, src.Repartition, "-repartition")
			}
		}
		for _, k := range s.Sinks {
			if k.Topic != "" {
				user(k.Topic, kindSink+"("+k.Topic+")")
			}
		}
		for _, st := range s.Stores {
			internal(st.ID, st.ID, "-changelog")
		}
	}
	return errs.join()
}
