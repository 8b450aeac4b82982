package responder

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"hadrain/internal/agentcheck"
	"hadrain/internal/version"
)

// buckets are the upper bounds of check_duration_seconds, in seconds.
var buckets = [...]float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 5e-3, 25e-3, 100e-3, 500e-3}

// counts are what every check adds to: plain atomics, a few nanoseconds each.
type counts struct {
	answers [agentcheck.Kinds]atomic.Uint64
	took    [len(buckets) + 1]atomic.Uint64 // by bucket, not cumulative; the last is +Inf
	nanos   atomic.Uint64
}

func (c *counts) add(kind agentcheck.Kind, took time.Duration) {
	c.answers[kind].Add(1)
	c.nanos.Add(uint64(max(took, 0)))
	i, seconds := 0, took.Seconds()
	for i < len(buckets) && seconds > buckets[i] {
		i++
	}
	c.took[i].Add(1)
}

// histogram returns the durations as Prometheus wants them.
func (c *counts) histogram() (count uint64, sum float64, cumulative map[float64]uint64) {
	cumulative = make(map[float64]uint64, len(buckets))
	for i, bound := range buckets {
		count += c.took[i].Load()
		cumulative[bound] = count
	}
	return count + c.took[len(buckets)].Load(), float64(c.nanos.Load()) / 1e9, cumulative
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hadrain_responder_"+name, help, labels, nil)
}

var (
	descChecks      = desc("checks_total", "Agent checks answered, by what the answer says.", "answer")
	descDuration    = desc("check_duration_seconds", "Time from accepting a check to its answer.")
	descUnanswered  = desc("unanswered_total", "Connections that got no answer, by reason.", "reason")
	descConnections = desc("connections", "Connections of agent checks that are open.")
	descAccepted    = desc("connections_total", "Connections of agent checks that were accepted.")
	descEvicted     = desc("connections_evicted_total", "Connections that were closed to make room for others.")
	descRows        = desc("rows", "Rows that HAProxy asks for.")
	descSilent      = desc("silent_rows", "Rows that HAProxy has stopped asking for while it asks for others.")
	descUnasked     = desc("unasked_keys", "Keys of the state that this HAProxy does not ask for.")
	descLoaded      = desc("state_loaded", "Whether a state is loaded; without one every check is answered unsynced.")
	descAge         = desc("state_age_seconds", "Age of the last read of Consul that render accepted.")
	descIndex       = desc("state_index", "Consul's index of the state that is served.")
	descKeys        = desc("state_keys", "Keys in the state that is served.")
	descRejected    = desc("state_rejected_keys", "Keys of the state whose value in Consul is not a state.")
	descStale       = desc("state_refused", "Whether the state file on disk is missing or refused, and not the one served.")
	descLoads       = desc("state_loads_total", "State files that were loaded.")
	descFailures    = desc("state_parse_failures_total", "State files that were refused.")
	descBuild       = desc("build_info", "The version of the program, value 1.", "version")
)

// collector makes the metrics from one look at everything.
type collector struct{ r *responder }

func (r *responder) registry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{r}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	c.checks(out)
	c.connections(out)
	doc := c.r.status(time.Now())
	silent := 0
	for _, row := range doc.Rows {
		if row.Silent {
			silent++
		}
	}
	gauge(out, descRows, float64(len(doc.Rows)))
	gauge(out, descSilent, float64(silent))
	gauge(out, descUnasked, float64(len(doc.Unasked)))
	gauge(out, descLoaded, boolean(doc.State.Loaded))
	gauge(out, descStale, boolean(doc.State.Error != ""))
	counter(out, descLoads, c.r.store.loads.Load())
	counter(out, descFailures, c.r.store.failures.Load())
	gauge(out, descBuild, 1, version.String())
	if doc.State.Loaded {
		gauge(out, descAge, doc.State.Age)
		gauge(out, descIndex, float64(doc.State.Index))
		gauge(out, descKeys, float64(doc.State.Keys))
		gauge(out, descRejected, float64(len(doc.Rejected)))
	}
}

func (c collector) checks(out chan<- prometheus.Metric) {
	for kind := range agentcheck.Kind(agentcheck.Kinds) {
		counter(out, descChecks, c.r.counts.answers[kind].Load(), kind.String())
	}
	count, sum, cumulative := c.r.counts.histogram()
	out <- prometheus.MustNewConstHistogram(descDuration, count, sum, cumulative)
}

func (c collector) connections(out chan<- prometheus.Metric) {
	stats := c.r.agent.Stats()
	for reason, n := range stats.Lost {
		counter(out, descUnanswered, n, reason.String())
	}
	gauge(out, descConnections, float64(stats.Open))
	counter(out, descAccepted, stats.Accepted)
	counter(out, descEvicted, stats.Lost[agentcheck.LostEvicted])
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, v uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
