package tidemarktest

import "github.com/tidemark/tidemark/processor"

// TaskWatermark is how far the event time of one operator has got in one task.
type TaskWatermark struct {
	Task processor.TaskID
	processor.Watermark
}

// Watermarks returns the watermark of every operator that asks for the event time, in the order of the topology and of
// the partitions, as it is before the next commit.
func (d *Driver) Watermarks() []TaskWatermark { return d.c.watermarks() }

func (c *cluster) watermarks() []TaskWatermark {
	var list []TaskWatermark
	for _, s := range c.subs {
		for p := range int32(s.tasks) {
			id := processor.TaskID{Sub: s.ID, Partition: p}
			if t := c.find(id); t != nil {
				for _, w := range t.proc.Watermarks(nil) {
					list = append(list, TaskWatermark{id, w})
				}
			}
		}
	}
	return list
}
