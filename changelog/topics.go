package changelog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Want is what an application expects of one topic.
type Want struct {
	Topic      string
	Class      Class             // 0 for a user's topic: only partitions and ID are looked at
	Partitions int32             // 0: any number
	ID         [16]byte          // zero: any; else the id an earlier run recorded
	Configs    map[string]string // created with
	Replicas   int16             // created with; 0 or -1: the broker's default
	Verified   []string          // the configs that must have the wanted value in an existing topic
}

// Have is one topic as the cluster describes it.
type Have struct {
	Topic      string
	ID         [16]byte
	Partitions int32
	Configs    map[string]string // as described; nil when not asked for
}

// Mismatch is one difference between what is wanted and what is there.
type Mismatch struct {
	Topic  string
	Field  string // "topic", "partitions", "topic id" or the name of a config
	Want   string
	Have   string
	Repair string // the command, or the decision, that repairs it
}

func (m Mismatch) Error() string {
	return fmt.Sprintf("changelog: topic %q: %s is %s, want %s; repair: %s", m.Topic, m.Field, m.Have, m.Want, m.Repair)
}

const (
	segmentBytes         = 64 << 20
	progressSegmentBytes = 4 << 20
	deleteRetention      = 7 * 24 * time.Hour
	userRetention        = 7 * 24 * time.Hour
)

// DeleteRetention is delete.retention.ms of the compacted topics: how long a
// tombstone stays readable, hence how old local state may be and still be repaired
// from the changelog.
const DeleteRetention = deleteRetention

// WantRepartition returns what is expected of a repartition topic: never deleted
// by age, purged below the committed offset.
func WantRepartition(topic string, partitions int32) Want {
	return internal(topic, Repartition, partitions, segmentBytes, map[string]string{
		"cleanup.policy":  "delete",
		"retention.ms":    "-1",
		"retention.bytes": "-1",
	})
}

// WantChangelog returns what is expected of the changelog of a store whose rows go with a tombstone: key-value, sessions,
// timers.
func WantChangelog(topic string, partitions int32) Want {
	return internal(topic, KVChangelog, partitions, segmentBytes, compacted())
}

// WantWindowChangelog returns what is expected of the changelog of a store of windows. Old rows of a window are compacted
// away, expired windows are trimmed. Nothing is deleted by age: the watermark may stand still for longer.
func WantWindowChangelog(topic string, partitions int32) Want {
	return internal(topic, KVChangelog, partitions, segmentBytes, map[string]string{
		"cleanup.policy":      "compact,delete",
		"delete.retention.ms": ms(deleteRetention),
		"retention.ms":        "-1",
		"retention.bytes":     "-1",
	})
}

// WantDedupChangelog returns what is expected of the changelog of a deduplication: every id is written once, and expired
// ones are trimmed.
func WantDedupChangelog(topic string, partitions int32) Want {
	return internal(topic, KVChangelog, partitions, segmentBytes, map[string]string{
		"cleanup.policy":  "delete",
		"retention.ms":    "-1",
		"retention.bytes": "-1",
	})
}

// WantProgress returns what is expected of a progress topic. Its segments are
// small because it is read from its tail and cleaned often.
func WantProgress(topic string, partitions int32) Want {
	return internal(topic, ProgressLog, partitions, progressSegmentBytes, compacted())
}

// WantControl returns what is expected of the control topic.
func WantControl(topic string) Want {
	return internal(topic, Control, 1, progressSegmentBytes, compacted())
}

// WantDeadLetter returns how the dead-letter topic is created. It is the user's to
// change afterwards, so only its partition count is verified.
func WantDeadLetter(topic string, partitions int32) Want {
	return userTopic(topic, DeadLetter, partitions)
}

// WantLate returns how the topic of late records is created; see WantDeadLetter.
func WantLate(topic string, partitions int32) Want { return userTopic(topic, Late, partitions) }

// WantSource returns what is expected of a topic the application does not own.
func WantSource(topic string, partitions int32) Want {
	return Want{Topic: topic, Partitions: partitions}
}

func compacted() map[string]string {
	return map[string]string{
		"cleanup.policy":      "compact",
		"delete.retention.ms": ms(deleteRetention),
	}
}

func internal(topic string, class Class, partitions int32, segment int, configs map[string]string) Want {
	w := Want{Topic: topic, Class: class, Partitions: partitions, Configs: configs}
	w.Configs["segment.bytes"] = strconv.Itoa(segment)
	// Event time may lie ahead of the wall clock; one refused timestamp refuses a whole batch.
	w.Configs["message.timestamp.type"] = "CreateTime"
	w.Configs["message.timestamp.after.max.ms"] = maxInt64
	w.Configs["message.timestamp.before.max.ms"] = maxInt64
	w.Verified = []string{"cleanup.policy", "message.timestamp.type"}
	if _, ok := configs["retention.ms"]; ok {
		w.Verified = append(w.Verified, "retention.ms", "retention.bytes")
	}
	return w
}

func userTopic(topic string, class Class, partitions int32) Want {
	return Want{Topic: topic, Class: class, Partitions: partitions, Configs: map[string]string{
		"cleanup.policy":                  "delete",
		"retention.ms":                    ms(userRetention),
		"message.timestamp.after.max.ms":  maxInt64,
		"message.timestamp.before.max.ms": maxInt64,
	}}
}

const maxInt64 = "9223372036854775807"

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Verify compares wanted topics with those the cluster has. Missing topics of the
// application (Class set) are returned for creation; everything else that differs
// is a mismatch with the command that repairs it. Both results are sorted by topic.
// A replaced topic is told by its id: its name and shape may well be right.
func Verify(want []Want, have []Have) (missing []Want, bad []Mismatch) {
	byName := make(map[string]Have, len(have))
	for _, h := range have {
		byName[h.Topic] = h
	}
	sorted := slices.Clone(want)
	slices.SortStableFunc(sorted, func(a, b Want) int { return strings.Compare(a.Topic, b.Topic) })
	for _, w := range sorted {
		h, ok := byName[w.Topic]
		switch {
		case ok:
			bad = append(bad, verify(w, h)...)
		case w.ID != [16]byte{}:
			bad = append(bad, Mismatch{w.Topic, "topic", "there (it has been used before)", "absent",
				"recreate nothing by hand; see tidemark reset, or restore the topic from a backup of the cluster"})
		case w.Class == 0:
			bad = append(bad, Mismatch{w.Topic, "topic", "there", "absent",
				"kafka-topics.sh --bootstrap-server <brokers> --create --topic " + w.Topic + " --partitions <n>"})
		default:
			missing = append(missing, w)
		}
	}
	return missing, bad
}

func verify(w Want, h Have) (bad []Mismatch) {
	if w.ID != [16]byte{} && h.ID != w.ID {
		bad = append(bad, Mismatch{w.Topic, "topic id", FormatTopicID(w.ID), FormatTopicID(h.ID),
			"the topic was deleted and created again; what it held is gone: tidemark reset, or restore the former topic"})
	}
	if w.Partitions > 0 && h.Partitions != w.Partitions {
		repair := "kafka-topics.sh --bootstrap-server <brokers> --alter --topic " + w.Topic + " --partitions " + strconv.Itoa(int(w.Partitions))
		// Growing a topic that holds keyed records leaves old keys in the wrong partition.
		if h.Partitions > w.Partitions || w.Class != DeadLetter && w.Class != Late {
			repair = "the partition count of a keyed topic cannot be changed in place: go back to " + strconv.Itoa(int(h.Partitions)) +
				" partitions upstream, or tidemark reset"
		}
		bad = append(bad, Mismatch{w.Topic, "partitions", strconv.Itoa(int(w.Partitions)), strconv.Itoa(int(h.Partitions)), repair})
	}
	if h.Configs == nil {
		return bad
	}
	for _, k := range slices.Sorted(slices.Values(w.Verified)) {
		if have := h.Configs[k]; !sameConfig(have, w.Configs[k]) {
			if have == "" {
				have = "unset"
			}
			bad = append(bad, Mismatch{w.Topic, k, w.Configs[k], have,
				"kafka-configs.sh --bootstrap-server <brokers> --alter --entity-type topics --entity-name " + w.Topic +
					" --add-config " + k + "=" + bracket(w.Configs[k])})
		}
	}
	return bad
}

// sameConfig compares two config values; lists may come in any order.
func sameConfig(a, b string) bool {
	split := func(s string) []string {
		parts := strings.Split(s, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		slices.Sort(parts)
		return parts
	}
	return slices.Equal(split(a), split(b))
}

// bracket quotes a list value the way kafka-configs.sh wants it.
func bracket(v string) string {
	if strings.Contains(v, ",") {
		return "[" + v + "]"
	}
	return v
}
