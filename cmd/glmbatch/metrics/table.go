package metrics

// Metric is one of the metrics that there are.
type Metric struct {
	Name   string
	Type   Type
	Labels []string // beside run_id and shard, which all have
	Help   string
}

// Type is what a metric is to Prometheus.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// names of the metrics, as the code that fills them in uses them.
const (
	info         = "glmbatch_job_info"
	started      = "glmbatch_job_start_time_seconds"
	inputRows    = "glmbatch_job_rows"
	exitCode     = "glmbatch_job_exit_code"
	ended        = "glmbatch_job_end_time_seconds"
	rows         = "glmbatch_rows_total"
	outputRows   = "glmbatch_output_rows_total"
	tokens       = "glmbatch_tokens_total"
	computed     = "glmbatch_computed_tokens_total"
	rowErrors    = "glmbatch_row_errors_total"
	stepSeconds  = "glmbatch_step_duration_seconds"
	sequences    = "glmbatch_sequences"
	pagesUsed    = "glmbatch_kv_pages_used"
	pages        = "glmbatch_kv_pages"
	preemptions  = "glmbatch_preemptions_total"
	lastSync     = "glmbatch_last_sync_timestamp_seconds"
	journalAge   = "glmbatch_journal_age_seconds"
	journalBytes = "glmbatch_journal_written_bytes_total"
	gpuWatts     = "glmbatch_gpu_power_watts"
	gpuJoules    = "glmbatch_gpu_energy_joules_total"
	gpuClock     = "glmbatch_gpu_clock_hertz"
	gpuCelsius   = "glmbatch_gpu_temperature_celsius"
	gpuMemory    = "glmbatch_gpu_memory_used_bytes"
	gpuThrottle  = "glmbatch_gpu_throttled"
)

// Table has all metrics, in the order of the documentation.
var Table = []Metric{
	{info, Gauge, []string{"model", "device", "version"}, "1; its labels say what the job is."},
	{started, Gauge, nil, "When the job began, its earlier runs included, as Unix time."},
	{inputRows, Gauge, nil, "Input rows that the job has in all."},
	{ended, Gauge, nil, "When the run ended, as Unix time; absent while it runs."},
	{exitCode, Gauge, nil, "The exit code that the run ended with; absent while it runs."},
	{rows, Counter, nil, "Input rows that are done and saved, those of earlier runs included."},
	{outputRows, Counter, nil, "Output rows, those of earlier runs included."},
	{rowErrors, Counter, []string{"code"}, "Rows with errors by their code, those of earlier runs included."},
	{tokens, Counter, []string{"kind"}, "Tokens of output rows (prompt, completion), those of earlier runs included."},
	{computed, Counter, nil, "Tokens that went through the model in this run, those computed again after a " +
		"preemption included."},
	{stepSeconds, Histogram, []string{"kind"}, "How long steps of the engine took, by kind (prefill, mixed, decode)."},
	{sequences, Gauge, []string{"state"}, "Sequences of the last step: running in it, or waiting to be admitted."},
	{pagesUsed, Gauge, nil, "Pages of the caches that the last step used."},
	{pages, Gauge, nil, "Pages that the caches have."},
	{preemptions, Counter, nil, "Sequences that lost their cache pages to others in this run."},
	{lastSync, Gauge, nil, "All that was finished by then is on the disk, as Unix time."},
	{journalAge, Gauge, nil, "The time since then: the most finished work that the machine's end would cost."},
	{journalBytes, Counter, nil, "Bytes that this run wrote to the journal of finished rows."},
	{gpuWatts, Gauge, nil, "What the job's GPUs draw together; absent without a GPU, as all below."},
	{gpuJoules, Counter, nil, "What they used together, by their own meters, since the driver was loaded."},
	{gpuClock, Gauge, nil, "Clock of the multiprocessors of the slowest."},
	{gpuCelsius, Gauge, nil, "Temperature of the hottest."},
	{gpuMemory, Gauge, nil, "Memory in use, of all together, by other programs too."},
	{gpuThrottle, Gauge, []string{"reason"}, "1 for each reason for which a clock is lower than it could be."},
}
