package changelog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Class says what an internal topic is for; it decides its configuration.
type Class uint8

// The classes of internal topics.
const (
	Repartition Class = iota + 1 // records between two sub-topologies
	KVChangelog                  // changelog of a store
	ProgressLog                  // progress records of a sub-topology
	Control                      // sub-topology ids, formats, fingerprint
	DeadLetter                   // records that could not be processed
	Late                         // records that came too late
)

// String returns the suffix of the class in topic names.
func (c Class) String() string {
	switch c {
	case Repartition:
		return "repartition"
	case KVChangelog:
		return "changelog"
	case ProgressLog:
		return "progress"
	case Control:
		return "control"
	case DeadLetter:
		return "dead-letter"
	case Late:
		return "late"
	}
	return "class(" + strconv.Itoa(int(c)) + ")"
}

// maxTopic is Kafka's limit for a topic name, in characters.
const maxTopic = 249

var (
	legalName  = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)
	generation = regexp.MustCompile(`-g[0-9]+$`)
	genPrefix  = regexp.MustCompile(`^g[0-9]+(-|$)`)
)

// Names derives every name an application uses in the cluster from its id and
// its generation. The zero Names is not usable; see NewNames.
type Names struct {
	app        string
	generation int
}

// NewNames checks the application id and returns its names. Generation 0 is the
// first life of an application; a restore from a savepoint into a new generation
// N puts -g<N> behind the id. It errors for characters Kafka does not allow in a
// topic name, for an id that ends like a generation, and for an id too long.
func NewNames(app string, generation int) (Names, error) {
	if err := checkName("application id", app); err != nil {
		return Names{}, err
	}
	if generationSuffix(app) {
		return Names{}, fmt.Errorf("changelog: application id %q ends like a generation (-g<number>), which is added by a restore from a savepoint", app)
	}
	if generation < 0 {
		return Names{}, fmt.Errorf("changelog: generation %d of application %q", generation, app)
	}
	return Names{app, generation}, nil
}

func generationSuffix(app string) bool { return generation.MatchString(app) }

// App returns the application id without its generation.
func (n Names) App() string { return n.app }

// Generation returns the generation, 0 for the first.
func (n Names) Generation() int { return n.generation }

// Base returns the prefix of all names: the application id and, behind the
// first generation, -g<N>. It is also the consumer group.
func (n Names) Base() string {
	if n.generation == 0 {
		return n.app
	}
	return n.app + "-g" + strconv.Itoa(n.generation)
}

// Group returns the name of the consumer group.
func (n Names) Group() string { return n.Base() }

// Repartition returns the topic of the repartition with this operator id.
func (n Names) Repartition(operator string) string { return n.Base() + "-" + operator + "-repartition" }

// Changelog returns the changelog topic of the store with this id.
func (n Names) Changelog(store string) string { return n.Base() + "-" + store + "-changelog" }

// Progress returns the progress topic of the sub-topology with this id.
func (n Names) Progress(sub string) string { return n.Base() + "-" + sub + "-progress" }

// Control returns the control topic.
func (n Names) Control() string { return n.Base() + "-control" }

// DeadLetter returns the topic of records that could not be processed.
func (n Names) DeadLetter() string { return n.Base() + "-dead-letter" }

// Late returns the topic of records that came too late.
func (n Names) Late() string { return n.Base() + "-late" }

// TransactionalPrefix returns what all transactional ids of one instance begin
// with, without the last dash.
func (n Names) TransactionalPrefix(instance string) string { return n.Base() + "-" + instance }

// TransactionalID returns the id of one worker's producer: <base>-<instance>-<worker>.
func (n Names) TransactionalID(instance string, worker int) string {
	return n.TransactionalPrefix(instance) + "-" + strconv.Itoa(worker)
}

// ParseTransactionalID takes one of the application's transactional ids apart.
// Instance ids hold no dash, so the ids of application a-b are never taken for
// those of application a.
func (n Names) ParseTransactionalID(id string) (instance string, worker int, ok bool) {
	rest, ok := strings.CutPrefix(id, n.Base()+"-")
	if !ok {
		return "", 0, false
	}
	instance, number, ok := strings.Cut(rest, "-")
	if !ok || instance == "" {
		return "", 0, false
	}
	worker, err := strconv.Atoi(number)
	if err != nil || worker < 0 || strconv.Itoa(worker) != number {
		return "", 0, false
	}
	return instance, worker, true
}

// Parse takes the name of an internal topic of this application apart: its class
// and the operator, store or sub-topology id in it (empty for the topics an
// application has once). It is false for topics of others and of other generations.
func (n Names) Parse(topic string) (class Class, id string, ok bool) {
	rest, ok := strings.CutPrefix(topic, n.Base()+"-")
	if !ok {
		return 0, "", false
	}
	for _, c := range []Class{Control, DeadLetter, Late} {
		if rest == c.String() {
			return c, "", true
		}
	}
	for _, c := range []Class{Repartition, KVChangelog, ProgressLog} {
		if id, ok := strings.CutSuffix(rest, "-"+c.String()); ok && id != "" && !genPrefix.MatchString(id) {
			return c, id, true
		}
	}
	return 0, "", false
}

// Reserved reports whether a topic a user names as source or sink looks like an
// internal topic of this application, whatever its generation.
func (n Names) Reserved(topic string) bool {
	if _, _, ok := n.Parse(topic); ok {
		return true
	}
	rest, ok := strings.CutPrefix(topic, n.app+"-g")
	if !ok {
		return false
	}
	number, _, _ := strings.Cut(rest, "-")
	g, err := strconv.Atoi(number)
	if err != nil || g < 1 {
		return false
	}
	_, _, ok = Names{n.app, g}.Parse(topic)
	return ok
}

// CheckIDs checks the ids of a topology's operators, stores and sub-topologies:
// Kafka's characters, the length of the topics made of them, no beginning like a
// generation, and no two that Kafka's metrics could not tell apart ("a.b", "a_b").
// All findings are returned at once.
func (n Names) CheckIDs(ids []string) error {
	var errs []error
	folded := make(map[string]string, len(ids))
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if err := checkName("operator id", id); err != nil {
			errs = append(errs, err)
			continue
		}
		if genPrefix.MatchString(id) {
			errs = append(errs, fmt.Errorf("changelog: operator id %q begins like a generation (g<number>-): its topics could be those of a later generation of %q", id, n.app))
		}
		if longest := n.Repartition(id); len(longest)+len("-g999") > maxTopic {
			errs = append(errs, fmt.Errorf("changelog: operator id %q makes topic names of %d characters, Kafka allows %d", id, len(longest)+len("-g999"), maxTopic))
		}
		f := strings.ReplaceAll(id, ".", "_")
		if other, ok := folded[f]; ok && other != id {
			errs = append(errs, fmt.Errorf("changelog: operator ids %q and %q make topic names that Kafka refuses side by side (dot and underscore)", other, id))
		}
		folded[f] = id
	}
	return errors.Join(errs...)
}

// Clash is a topic of this application that another application could use as its own.
type Clash struct {
	Topic string // the name both would use
	Other string // the other application
	Exact bool   // the other application lists the very topic, not only the prefix
}

func (c Clash) Error() string {
	how := "begins with the id of application %q"
	if c.Exact {
		how = "belongs to application %q"
	}
	return fmt.Sprintf("changelog: topic %q "+how+"; rename the application or the operator", c.Topic, c.Other)
}

// CheckClashes looks for names that two applications could share: a with an
// operator b-c and a-b with an operator c both own "a-b-c-repartition". topics are
// the internal topics this application is going to use, cluster all topics of the
// cluster. Another application is known by its control topic. A topic of ours that
// lies in the name space of an application with a longer id is refused even while
// that application has no such operator, because it could get one. And on a first start
// (there is no control topic of ours) a topic that lies in our name space and could be
// one of an application with a shorter id is taken for that application's.
func (n Names) CheckClashes(topics, cluster []string) error {
	var others []string
	for _, t := range cluster {
		if base, ok := strings.CutSuffix(t, "-control"); ok && base != "" && base != n.Base() {
			others = append(others, base)
		}
	}
	slices.Sort(others)
	var errs []error
	if !slices.Contains(cluster, n.Control()) {
		for _, t := range slices.Sorted(slices.Values(cluster)) {
			for _, o := range others {
				_, _, ours := n.Parse(t)
				_, _, theirs := (Names{app: o}).Parse(t)
				if ours && theirs && strings.HasPrefix(n.Base(), o+"-") {
					errs = append(errs, Clash{Topic: t, Other: o, Exact: true})
				}
			}
		}
	}
	for _, t := range slices.Sorted(slices.Values(topics)) {
		for _, o := range others {
			if len(o) > len(n.Base()) && strings.HasPrefix(t, o+"-") {
				errs = append(errs, Clash{Topic: t, Other: o, Exact: slices.Contains(cluster, t)})
			}
		}
	}
	return errors.Join(errs...)
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("changelog: %s is empty", what)
	case !legalName.MatchString(name):
		return fmt.Errorf("changelog: %s %q: only letters, digits, dot, underscore and dash are allowed", what, name)
	case name == "." || name == "..":
		return fmt.Errorf("changelog: %s %q is not allowed by Kafka", what, name)
	case len(name) > maxTopic-len("-g999-repartition")-2:
		return fmt.Errorf("changelog: %s %q has %d characters, which leaves no room for topic names", what, name, len(name))
	}
	return nil
}
