package engine_test

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/tidemark/tidemark/changelog"
)

// rights are all an app needs. words are what the error says when one is missing; nil where another right
// implies it, or where its lack only costs disk space.
var rights = []struct {
	name     string
	resource kmsg.ACLResourceType
	on       string
	prefixed bool
	op       kmsg.ACLOperation
	words    []string
}{
	{"read the input", kmsg.ACLResourceTypeTopic, "in", false, kmsg.ACLOperationRead, []string{"in", "DESCRIBE"}},
	{"describe the input's configs", kmsg.ACLResourceTypeTopic, "in", false, kmsg.ACLOperationDescribeConfigs, []string{"in", "DESCRIBE_CONFIGS"}},
	{"write the output", kmsg.ACLResourceTypeTopic, "out", false, kmsg.ACLOperationWrite, []string{"out"}},
	{"describe the output's configs", kmsg.ACLResourceTypeTopic, "out", false, kmsg.ACLOperationDescribeConfigs, []string{"out", "DESCRIBE_CONFIGS"}},
	{"see transactions on the output", kmsg.ACLResourceTypeTopic, "out", false, kmsg.ACLOperationRead, []string{"out", "open transactions"}},
	{"create internal topics", kmsg.ACLResourceTypeTopic, "app-", true, kmsg.ACLOperationCreate, []string{"app-", "CREATE"}},
	{"read internal topics", kmsg.ACLResourceTypeTopic, "app-", true, kmsg.ACLOperationRead, []string{"app-"}},
	{"write internal topics", kmsg.ACLResourceTypeTopic, "app-", true, kmsg.ACLOperationWrite, []string{"app-"}},
	{"describe internal configs", kmsg.ACLResourceTypeTopic, "app-", true, kmsg.ACLOperationDescribeConfigs, []string{"app-", "DESCRIBE_CONFIGS"}},
	{"purge", kmsg.ACLResourceTypeTopic, "app-", true, kmsg.ACLOperationDelete, nil},
	{"join the group", kmsg.ACLResourceTypeGroup, "app", false, kmsg.ACLOperationRead, []string{"app"}},
	{"transactions", kmsg.ACLResourceTypeTransactionalId, "app-", true, kmsg.ACLOperationWrite, []string{"app", "WRITE"}},
}

// grants returns the rights but one.
func grants(without int) (out []kfake.ACL) {
	for i, r := range rights {
		pattern := kmsg.ACLResourcePatternTypeLiteral
		if r.prefixed {
			pattern = kmsg.ACLResourcePatternTypePrefixed
		}
		if i != without {
			out = append(out, kfake.ACL{Resource: r.resource, Name: r.on, Pattern: pattern, Operation: r.op, Allow: true})
		}
	}
	return out
}

func plain(user string) []kgo.Opt {
	return []kgo.Opt{kgo.SASL(saslplain.Auth{User: user, Pass: user}.AsMechanism())}
}

// contains says whether text holds all of the words.
func contains(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func tp(topic string, partition int32) changelog.TopicPartition {
	return changelog.TopicPartition{Topic: topic, Partition: partition}
}
