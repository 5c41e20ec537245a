package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/internal/embedded"
)

const partitions = 4

// startBroker starts the broker inside the program. It keeps its topics under dir, so that a restart finds
// the events, the totals and the app's state. It writes them down in the background: killing the program with
// kill -9 may take the last moments of the broker's own files with it, which a real Kafka does not do.
func startBroker(dir string) (addrs []string, stop func(), err error) {
	b, err := embedded.Start(embedded.Options{DataDir: filepath.Join(dir, "broker")})
	if err != nil {
		return nil, nil, err
	}
	return b.Addrs(), b.Close, nil
}

// makeTopics creates the user's topics where they are missing.
func makeTopics(ctx context.Context, cl *kgo.Client) error {
	// Totals are a table: only the last one of each campaign matters. Of minutes every pane is kept. The app would make
	// the topic of late events itself, but the board reads it from the beginning.
	for topic, policy := range map[string]string{eventsTopic: "delete", totalsTopic: "compact", minutesTopic: "delete", lateTopic: "delete"} {
		_, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, -1, map[string]*string{"cleanup.policy": &policy}, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}
