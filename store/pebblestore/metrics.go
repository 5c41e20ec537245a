package pebblestore

// Metrics is what is worth watching in one database. Sizes are in bytes.
type Metrics struct {
	// DiskBytes is the space its files take, MemTableBytes the size of what is not flushed.
	DiskBytes, MemTableBytes uint64
	// CompactionDebt is what compactions have still to rewrite. If it grows for minutes, they do not keep up.
	CompactionDebt uint64
	// ReadAmplification is the number of places a read may have to look at. Above 20 reads become slow.
	ReadAmplification int
	// Tables is the number of table files, Flushes and Compactions what was done since Open.
	Tables, Flushes, Compactions int64
	// FailedCompactions counts those that ended with an error.
	FailedCompactions int64
}

// Metrics returns present figures. It takes some microseconds and may be called by any goroutine before Close.
func (d *DB) Metrics() Metrics {
	if d.closed.Load() {
		return Metrics{}
	}
	m := d.pebble.Metrics()
	out := Metrics{
		DiskBytes:         m.DiskSpaceUsage(),
		MemTableBytes:     m.MemTable.Size,
		CompactionDebt:    m.Compact.EstimatedDebt,
		ReadAmplification: m.ReadAmp(),
		Flushes:           m.Flush.Count,
		Compactions:       m.Compact.Count,
		FailedCompactions: m.Compact.FailedCount,
	}
	for _, l := range m.Levels {
		out.Tables += l.TablesCount
	}
	return out
}
