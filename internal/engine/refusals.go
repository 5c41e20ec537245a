package engine

// refusals are the dead letters of a generation. They reach the metrics with its commit: after an abort the same
// records are met again.
type refusals map[refusal]int

type refusal struct{ sub, stage string }

func (r refusals) count(m *Metrics) {
	for k, n := range r {
		m.recordErrors.WithLabelValues(k.sub, k.stage).Add(float64(n))
		m.deadLetters.WithLabelValues(k.sub).Add(float64(n))
	}
}

// failed is the record that ends Run, once what came before it is committed.
type failed struct {
	*RecordError
	sub     string
	counted bool
}

// fail ends Run with the record that could not be processed.
func (w *worker) fail() {
	if f := w.failing; !f.counted {
		f.counted = true
		w.e.cfg.Metrics.recordErrors.WithLabelValues(f.sub, f.Stage).Inc()
	}
	w.e.fail(w.failing.RecordError)
}
