package unit

import "github.com/tidemark/tidemark/watermark"

// Control is what control records cost a cluster, computed from the unit costs measured.
type Control struct {
	Bytes  int     // of one control record of a worker, with header and key
	Encode float64 // microseconds to encode one
	Apply  float64 // microseconds to decode one and take it in
	PerSec float64 // control records per second in the cluster
	ShareB float64 // of the bytes written
	ShareC float64 // of the CPU
}

// RunControl measures the unit costs and computes the shares for so many instances with so many tasks each, that write to a
// repartition topic of so many partitions so many records of so many bytes per second, each for perRecord microseconds of CPU on
// either side. One worker per instance is the most
// expensive division: it announces to every partition as often as the interval allows.
func RunControl(instances, tasks, partitions int, records, bytes, perRecord float64) (Control, error) {
	const announcements = 5 // per second: not more than one per 200 ms
	ctl := watermark.Control{Kind: 1, Epoch: 1, Writer: watermark.WriterID("by-key"), Tasks: uint32(instances * tasks), Generation: 1}
	for i := range tasks {
		ctl.Entries = append(ctl.Entries, watermark.Entry{Task: uint32(i * instances), W: event(int64(i) * 1000), Seq: 1_000_000})
	}
	var r Control
	value := ctl.Append(nil)
	// Header key and value, and what a record has of its own in a batch: lengths, deltas, attributes.
	r.Bytes = len(value) + len(watermark.ControlHeader) + 1 + 12
	const n = 200_000
	var buf []byte
	at := cpuSeconds()
	for i := range n {
		ctl.Entries[0].W++
		ctl.Entries[0].Seq = uint64(i)
		buf = ctl.Append(buf[:0])
	}
	r.Encode = (cpuSeconds() - at) * 1e6 / n
	v := watermark.NewVector(ctl.Writer)
	at = cpuSeconds()
	for i := range n {
		ctl.Entries[0].W = event(int64(i))
		ctl.Entries[0].Seq = uint64(2_000_000 + i)
		buf = ctl.Append(buf[:0])
		c, err := watermark.ParseControl(buf)
		if err != nil {
			return r, err
		}
		if err := v.Apply(c); err != nil {
			return r, err
		}
		v.Watermark()
	}
	r.Apply = (cpuSeconds()-at)*1e6/n - r.Encode
	r.PerSec = float64(instances) * announcements * float64(partitions)
	r.ShareB = r.PerSec * float64(r.Bytes) / (records * bytes)
	// A control record is encoded once per announcement, and costs what a data record costs on its way, written and read.
	r.ShareC = (r.PerSec*(r.Apply+2*perRecord) + float64(instances)*announcements*r.Encode) / (records * 2 * perRecord)
	return r, nil
}
