package engine

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the engine's Prometheus metrics. The help texts say what a bad value means.
type Metrics struct {
	records          *prometheus.CounterVec
	recordErrors     *prometheus.CounterVec
	deadLetters      *prometheus.CounterVec
	transactions     *prometheus.CounterVec
	aborts           *prometheus.CounterVec
	commitSeconds    prometheus.Histogram
	openSeconds      prometheus.Histogram
	restored         *prometheus.CounterVec
	restoreRemaining *prometheus.GaugeVec
	corruptions      prometheus.Counter
	tasks            *prometheus.GaugeVec
	lag              *prometheus.GaugeVec
	queued           prometheus.Gauge
	memory           *prometheus.GaugeVec
	lsoStuck         prometheus.Gauge
	controls         *prometheus.CounterVec
	late             *prometheus.CounterVec
	lateWindows      *prometheus.CounterVec
	lateAdmitted     *prometheus.CounterVec
	operatorRecords  *prometheus.CounterVec
	panes            *prometheus.CounterVec
	hotKey           *prometheus.GaugeVec
	watermark        *prometheus.GaugeVec
	watermarkLag     *prometheus.GaugeVec
	holder           *prometheus.GaugeVec
	idle             *prometheus.GaugeVec
	snapshots        *prometheus.CounterVec
	snapshotSeconds  prometheus.Histogram
	snapshotBytes    prometheus.Counter
	snapshotDeleted  prometheus.Counter
	snapshotAge      prometheus.Gauge
	snapshotRejected *prometheus.CounterVec
	hydration        prometheus.Gauge
}

// NewMetrics makes the metrics and registers them; a nil registerer leaves them unregistered.
func NewMetrics(reg prometheus.Registerer, app string) *Metrics {
	labels := prometheus.Labels{"app": app}
	counter := func(name, help string, vars ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "tidemark", Name: name, Help: help, ConstLabels: labels}, vars)
	}
	gauge := func(name, help string, vars ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tidemark", Name: name, Help: help, ConstLabels: labels}, vars)
	}
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "tidemark", Name: name, Help: help, ConstLabels: labels,
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16)})
	}
	m := &Metrics{
		records:          counter("records_total", "Input records processed, once more after an abort; a rate below the input's means growing lag.", "sub"),
		recordErrors:     counter("record_errors_total", "Records that could not be processed, by stage, counted when their dead letters are committed or Run ends; look at the log or the dead-letter topic.", "sub", "stage"),
		deadLetters:      counter("dead_letters_total", "Records committed to the dead-letter topic; each waits for somebody to look at it.", "sub"),
		transactions:     counter("transactions_total", "Ended transactions by outcome; aborted above 1 % of all deserves a look at the causes.", "outcome"),
		aborts:           counter("transaction_aborts_total", "Aborted transactions by cause; some at every rebalance are normal.", "cause"),
		commitSeconds:    seconds("commit_duration_seconds", "Time from sealing a generation to the answer of EndTxn; above the commit interval throughput suffers."),
		openSeconds:      seconds("task_open_duration_seconds", "Time from an assignment to a task that is ready to run; long times mean long restores."),
		restored:         counter("restore_records_total", "Changelog records replayed, by source.", "source"),
		restoreRemaining: gauge("restore_remaining_records", "Changelog offsets still to be replayed before the tasks run; it should fall.", "sub"),
		corruptions:      prometheus.NewCounter(prometheus.CounterOpts{Namespace: "tidemark", Name: "store_corruptions_total", Help: "Damaged local databases that were set aside and restored; check the disk.", ConstLabels: labels}),
		tasks:            gauge("tasks", "Tasks of this instance by state; opening for long means a restore or an open transaction is in the way.", "state"),
		lag:              gauge("source_lag_records", "Records between the committed offset and the last stable offset; growing means too little capacity.", "topic", "partition"),
		queued:           prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tidemark", Name: "queued_bytes", Help: "Fetched records waiting for a worker; at the limit fetching pauses.", ConstLabels: labels}),
		memory:           gauge("state_memory_bytes", "Memory of the stores: views, overlay (uncommitted), layer (committed, not yet on disk).", "part"),
		lsoStuck:         prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tidemark", Name: "stuck_partitions", Help: "Partitions whose last stable offset is held up by a transaction nobody ends; the log names the producer.", ConstLabels: labels}),
		controls:         counter("control_records_total", "Watermark records written to repartition topics.", "sub"),
		late:             counter("late_records_total", "Records sent to the topic of late records, by operator and reason; a rate above 0.1 % of the input asks for more out-of-orderness or lateness.", "operator", "reason"),
		lateWindows:      counter("late_windows_total", "Windows a record came too late for; another window may have taken it.", "operator"),
		lateAdmitted:     counter("late_admitted_total", "Records folded into a window that had fired; each changes a result already given.", "operator"),
		operatorRecords:  counter("operator_records_total", "What became of the records of windows and deduplications: in = folded + duplicate + late (late_records_total) + dead-lettered.", "operator", "outcome"),
		hotKey:           gauge("hot_key_share", "Share of the hottest key among the records combined in the last commit; near 1 one task does most of the work.", "operator"),
		panes:            counter("panes_total", "Panes emitted, by timing; suppressed ones would have repeated the last value, unfired windows were closed before a pane had shown their data.", "operator", "timing"),
		watermark:        gauge("watermark_ms", "Lowest watermark of an operator over this instance's tasks, in ms since 1970.", "operator"),
		watermarkLag:     gauge("watermark_lag_seconds", "Wall clock minus watermark; above the out-of-orderness plus 30 s something holds it: see watermark_holdback_seconds.", "operator"),
		holder:           gauge("watermark_holdback_seconds", "How long the named input, a topic's partition or an upstream task, has held an operator's watermark where it is.", "operator", "input"),
		idle:             gauge("partition_idle", "1 for an input partition that is silent and left out of the watermark; one that flaps asks for a longer IdleAfter.", "topic", "partition"),
	}
	plain := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "tidemark", Name: name, Help: help, ConstLabels: labels}
	}
	m.snapshots = counter("snapshots_total", "Snapshots by outcome: published ones count for restores; failed ones are tried again, several in a row deserve a look at the log and the object store.", "outcome")
	m.snapshotSeconds = seconds("snapshot_duration_seconds", "Time of an upload; one near the snapshot interval asks for a longer interval or a faster object store.")
	m.snapshotBytes = prometheus.NewCounter(prometheus.CounterOpts(plain("snapshot_uploaded_bytes_total", "Bytes of new files uploaded; much more than the changelogs grow means that compactions rewrite files between snapshots: lengthen the interval.")))
	m.snapshotDeleted = prometheus.NewCounter(prometheus.CounterOpts(plain("snapshot_deleted_objects_total", "Objects deleted because no retained snapshot needs them; none for days while snapshots are published means the bucket grows.")))
	m.snapshotAge = prometheus.NewGauge(prometheus.GaugeOpts(plain("snapshot_age_seconds", "Age of the oldest newest snapshot among this instance's tasks; far above the interval means a restore will replay that much changelog.")))
	m.snapshotRejected = counter("snapshot_rejected_total", "Snapshots a restore has turned down, by reason; damaged or missing objects deserve a look at the bucket.", "reason")
	m.hydration = prometheus.NewGauge(prometheus.GaugeOpts(plain("hydration_remaining_bytes", "Bytes of lazily opened databases that are still in the object store; it should fall to zero.")))
	if reg != nil {
		for _, c := range []prometheus.Collector{m.records, m.recordErrors, m.deadLetters, m.transactions, m.aborts, m.commitSeconds,
			m.openSeconds, m.restored, m.restoreRemaining, m.corruptions, m.tasks, m.lag, m.queued, m.memory, m.lsoStuck,
			m.controls, m.late, m.lateWindows, m.lateAdmitted, m.operatorRecords, m.panes, m.hotKey, m.watermark, m.watermarkLag, m.holder, m.idle,
			m.snapshots, m.snapshotSeconds, m.snapshotBytes, m.snapshotDeleted, m.snapshotAge, m.snapshotRejected, m.hydration} {
			reg.MustRegister(c)
		}
	}
	return m
}
