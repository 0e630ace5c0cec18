package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"glmbatch/engine"
	"glmbatch/pipeline"
	"glmbatch/telemetry"
)

// Options say what a job is.
type Options struct {
	RunID, Shard           string // labels of all metrics, as two jobs may be on one machine
	Model, Device, Version string
	Started                time.Time
	Rows                   int64
	Pages                  int
	Counts                 *pipeline.Counts
	GPU                    func() *telemetry.GPU // how the GPUs are; nil, or a nil one: there are none
}

// Job has a job's metrics. OnStep is for the engine's goroutine; all else is for any.
type Job struct {
	o     Options
	steps *prometheus.HistogramVec
	kinds map[string]prometheus.Observer // of OnStep's goroutine
	descs map[string]*prometheus.Desc

	running, waiting, used       atomic.Int64
	computed, preempted, endedAt atomic.Int64
	code                         atomic.Int64
}

// New returns the metrics of a job.
func New(o Options) *Job {
	j := &Job{o: o, kinds: map[string]prometheus.Observer{}, descs: map[string]*prometheus.Desc{}}
	labels := prometheus.Labels{"run_id": o.RunID, "shard": o.Shard}
	for _, m := range Table {
		if m.Name == stepSeconds {
			// 0.5 ms to 65 s: a decode step of a small model, and a prompt of the largest.
			j.steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help,
				ConstLabels: labels,
				Buckets:     prometheus.ExponentialBuckets(0.0005, 2, 18)}, m.Labels)
			continue
		}
		j.descs[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, labels)
	}
	return j
}

// OnStep counts a step.
func (j *Job) OnStep(i engine.StepInfo) {
	kind, ok := j.kinds[i.Kind]
	if !ok {
		kind = j.steps.WithLabelValues(i.Kind)
		j.kinds[i.Kind] = kind
	}
	kind.Observe(float64(i.Times.Wall.NS()) / 1e9)
	j.running.Store(int64(i.Sequences))
	j.waiting.Store(int64(i.Waiting))
	j.used.Store(int64(i.Pages))
	j.computed.Add(int64(i.Tokens))
	j.preempted.Add(int64(i.Preempted))
}

// End says how the run ended.
func (j *Job) End(code int, at time.Time) {
	j.code.Store(int64(code))
	j.endedAt.Store(at.UnixNano())
	j.running.Store(0)
}

// Describe implements prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	j.steps.Describe(to)
	for _, d := range j.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	j.steps.Collect(to)
	types := map[Type]prometheus.ValueType{Counter: prometheus.CounterValue, Gauge: prometheus.GaugeValue}
	values := j.values(time.Now())
	for _, m := range Table {
		for _, v := range values[m.Name] {
			to <- prometheus.MustNewConstMetric(j.descs[m.Name], types[m.Type], v.value, v.labels...)
		}
	}
}

// value is one of a metric, with its labels in the table's order.
type value struct {
	value  float64
	labels []string
}

// values are those of all metrics but the histogram, by name.
func (j *Job) values(now time.Time) map[string][]value {
	c := j.o.Counts
	one := func(n int64) []value { return []value{{value: float64(n)}} }
	at := func(ns int64) []value { return []value{{value: float64(ns) / 1e9}} }
	v := map[string][]value{
		info:       {{1, []string{j.o.Model, j.o.Device, j.o.Version}}},
		started:    at(j.o.Started.UnixNano()),
		inputRows:  one(j.o.Rows),
		rows:       one(c.Rows.Load()),
		outputRows: one(c.Samples.Load()),
		tokens: {{float64(c.PromptTokens.Load()), []string{"prompt"}},
			{float64(c.CompletionTokens.Load()), []string{"completion"}}},
		computed: one(j.computed.Load()),
		sequences: {{float64(j.running.Load()), []string{"running"}},
			{float64(j.waiting.Load()), []string{"waiting"}}},
		pagesUsed:   one(j.used.Load()),
		pages:       one(int64(j.o.Pages)),
		preemptions: one(j.preempted.Load()),
	}
	for code, n := range c.Codes() {
		v[rowErrors] = append(v[rowErrors], value{float64(n), []string{code}})
	}
	if ns := c.SyncedTo.Load(); ns > 0 {
		v[lastSync], v[journalAge] = at(ns), at(max(0, now.UnixNano()-ns))
	}
	v[journalBytes] = one(c.JournalBytes.Load())
	if j.o.GPU != nil {
		j.gpu(v, j.o.GPU())
	}
	if ns := j.endedAt.Load(); ns > 0 {
		v[ended], v[exitCode] = at(ns), one(j.code.Load())
		delete(v, journalAge) // nothing is left to be saved
	}
	return v
}

// gpu adds what the GPUs tell.
func (j *Job) gpu(v map[string][]value, g *telemetry.GPU) {
	if g == nil {
		return
	}
	for name, x := range map[string]float64{gpuWatts: g.Watts, gpuJoules: g.Joules, gpuClock: 1e6 * float64(g.Clock),
		gpuCelsius: float64(g.Celsius), gpuMemory: float64(g.Memory)} {
		if x > 0 {
			v[name] = []value{{value: x}}
		}
	}
	for _, t := range g.Throttle {
		v[gpuThrottle] = append(v[gpuThrottle], value{1, []string{t}})
	}
}
