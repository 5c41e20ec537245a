package tidemark

import (
	"context"
	"errors"

	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/topology"
)

// CheckUpgrade compares a topology with what runs under the configuration's application id, or ran last: it returns
// everything that keeps the topology from taking over, nothing if it can or if there is nothing. It connects and reads,
// joins no group, and writes nothing, so it may be called while the app runs: before a deployment, for example, by a
// program with its new topology:
//
//	if *check {
//		list, err := tidemark.CheckUpgrade(ctx, top, cfg)
//		if err == nil && len(list) > 0 {
//			topology.WriteDifferences(os.Stdout, list)
//			os.Exit(3)
//		}
//		…
//	}
//
// Of the configuration it uses App, Brokers, Kafka and AllowNonRestored. A program can also write its shape down and leave
// the comparison to the command tidemark check, see Plan.Shape in package topology.
func CheckUpgrade(ctx context.Context, t *topology.Topology, cfg Config) ([]topology.Difference, error) {
	plan, err := t.Build()
	if err != nil {
		return nil, errors.Join(err, cfg.check())
	}
	cfg.setDefaults(plan.Name)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := cfg.forCheck()
	tasks, err := engine.CountTasks(ctx, plan, c)
	if err != nil {
		return nil, err
	}
	return engine.CheckUpgrade(ctx, plan.Shape().WithTasks(tasks), c)
}

// CheckShape is CheckUpgrade for a topology of which only the shape is at hand. The application id is that of the
// configuration, or else the name of the topology.
func CheckShape(ctx context.Context, s topology.Shape, cfg Config) ([]topology.Difference, error) {
	cfg.setDefaults(s.Topology)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return engine.CheckUpgrade(ctx, s, cfg.forCheck())
}

// forCheck is what a look from outside needs of the configuration.
func (c *Config) forCheck() engine.CheckConfig {
	return engine.CheckConfig{App: c.App, Client: c.client(), AllowNonRestored: c.AllowNonRestored}
}
