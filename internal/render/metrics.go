package render

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"hadrain/internal/kv"
	"hadrain/internal/statefile"
	"hadrain/internal/version"
)

// metrics are what Prometheus sees, all with the prefix hadrain_render_.
type metrics struct {
	registry *prometheus.Registry

	lastContact, lastAccepted      prometheus.Gauge
	index, keys, rejected, skipped prometheus.Gauge
	reads, refused, readErrors     *prometheus.CounterVec
	reloads, templateFailures      *prometheus.CounterVec
	templateStale                  *prometheus.GaugeVec
	readDuration                   prometheus.Histogram
	renderDuration, writeDuration  prometheus.Histogram
	writes, writeErrors, putBacks  prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.lastContact = m.gauge("last_contact_timestamp_seconds", "Time of the last answer of Consul of any kind; 0 before it.")
	m.lastAccepted = m.gauge("last_accepted_read_timestamp_seconds", "Time of the last read of Consul that was accepted; 0 before it.")
	m.index = m.gauge("index", "Index of Consul that the state was made from.")
	m.keys = m.gauge("keys", "Keys of the state.")
	m.rejected = m.gauge("rejected_keys", "Keys whose value was rejected, so that they keep their last state.")
	m.skipped = m.gauge("skipped_keys", "Keys that cannot travel in agent-send.")
	m.reads = m.vec("reads_total", "Reads of Consul: changed, unchanged, refused (answered, but not to be believed) or failed.", "outcome")
	m.refused = m.vec("refused_reads_total", "Reads that Consul answered and that were refused, by reason.", "reason")
	m.readErrors = m.vec("failed_reads_total", "Reads that Consul did not answer as asked, by reason.", "reason")
	m.templateFailures = m.vec("template_failures_total", "Attempts to apply a further template that failed.", "template", "destination")
	m.reloads = m.vec("reloads_total", "Times that the list of templates, templates and certificates were read again: done, or failed, after which what failed stays as it was.", "outcome")
	m.templateStale = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "template_stale", Help: "Whether the last attempt to apply a further template failed, so that its file is an older one.",
	}, []string{"template", "destination"})
	m.registry.MustRegister(m.templateStale)
	m.readDuration = m.histogram("read_duration_seconds", "Time of reads of Consul; those that bring nothing new are held for 10 seconds.")
	m.renderDuration = m.histogram("render_duration_seconds", "Time from a read to the rendered state.")
	m.writeDuration = m.histogram("write_duration_seconds", "Time to write the state file and sync it.")
	m.writes = m.counter("file_writes_total", "State files written.")
	m.writeErrors = m.counter("file_write_errors_total", "Attempts to render, write or touch the state file that failed.")
	m.putBacks = m.counter("file_put_backs_total", "Times that somebody else removed or changed the state file.")
	for _, outcome := range []string{"changed", "unchanged", "refused", "failed"} {
		m.reads.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"done", "failed"} {
		m.reloads.WithLabelValues(outcome)
	}
	for _, reason := range []string{
		kv.NotConsul, kv.NoLeader, kv.ACLFiltered, kv.ACLAnonymous, kv.NoSentinel,
		kv.WrongSentinel, kv.TooManyKeys, kv.TooLarge, kv.Malformed,
	} {
		m.refused.WithLabelValues(reason)
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "build_info", Help: "Always 1; the label is the version."}, []string{"version"})
	info.WithLabelValues(version.String()).Set(1)
	m.registry.MustRegister(info)
	return m
}

// observe counts a read.
func (m *metrics) observe(err *kv.ReadError, changed bool, took time.Duration) {
	m.readDuration.Observe(took.Seconds())
	switch {
	case err == nil && changed:
		m.reads.WithLabelValues("changed").Inc()
	case err == nil:
		m.reads.WithLabelValues("unchanged").Inc()
	case err.Refused:
		m.reads.WithLabelValues("refused").Inc()
		m.refused.WithLabelValues(err.Reason).Inc()
	default:
		m.reads.WithLabelValues("failed").Inc()
		m.readErrors.WithLabelValues(err.Reason).Inc()
	}
}

// reloaded counts a reload.
func (m *metrics) reloaded(failed bool) {
	outcome := "done"
	if failed {
		outcome = "failed"
	}
	m.reloads.WithLabelValues(outcome).Inc()
}

// forget ends the series of a template that is listed no more: a stale one would
// be reported for ever.
func (m *metrics) forget(s series) {
	m.templateFailures.DeleteLabelValues(s.source, s.destination)
	m.templateStale.DeleteLabelValues(s.source, s.destination)
}

// A series is what the metrics of one template are labelled by: files of one
// source must not hide each other's failures.
type series struct{ source, destination string }

// setFile shows what the file says.
func (m *metrics) setFile(f *statefile.File) {
	m.index.Set(float64(f.Index))
	m.keys.Set(float64(len(f.Rows)))
	m.rejected.Set(float64(rejected(f.Rows)))
	m.skipped.Set(float64(len(f.Skipped)))
}

func (m *metrics) setTimes(contact, accepted time.Time) {
	for gauge, at := range map[prometheus.Gauge]time.Time{m.lastContact: contact, m.lastAccepted: accepted} {
		if !at.IsZero() {
			gauge.Set(float64(at.UnixMilli()) / 1000)
		}
	}
}

const prefix = "hadrain_render_"

func (m *metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	m.registry.MustRegister(g)
	return g
}

func (m *metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *metrics) vec(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

// histogram has buckets from 1 ms to 65 s.
func (m *metrics) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)})
	m.registry.MustRegister(h)
	return h
}
