package serve

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark/tidemark/internal/clock"
)

// metrics are what Prometheus sees of the questions.
type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	watchers prometheus.Gauge
}

// newMetrics registers the metrics, which may be there already from another Server of the process.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_query_requests_total",
			Help: "Questions by method and result, ok or the reason of the error. Many rebalancing or restoring: the group is not steady.",
		}, []string{"method", "result"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidemark_query_latency_seconds",
			Help:    "How long questions took, waiting for positions and owners included; watches are not among them.",
			Buckets: []float64{.00025, .0005, .001, .002, .003, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method"}),
		watchers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tidemark_query_watchers",
			Help: "Watches at the moment, those that other instances have forwarded included.",
		}),
	}
	if r == nil {
		return m, nil
	}
	err := errors.Join(register(r, &m.requests), register(r, &m.latency), register(r, &m.watchers))
	return m, err
}

func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if old, ok := there.ExistingCollector.(C); ok {
			*c = old
			return nil
		}
	}
	return err
}

// begin counts a question; the returned function ends it.
func (m *metrics) begin(c clock.Clock, method string) func(error) {
	from := c.Now()
	if method == "Watch" {
		m.watchers.Inc()
	}
	return func(err error) {
		result := "ok"
		if err != nil {
			result = strings.ToLower(string(reasoned(err).Reason))
			if _, known := table[reasoned(err).Reason]; !known {
				result = "failed"
			}
		}
		m.requests.WithLabelValues(method, result).Inc()
		if method == "Watch" {
			m.watchers.Dec()
			return
		}
		m.latency.WithLabelValues(method).Observe(c.Now().Sub(from).Seconds())
	}
}
