package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"glmbatch/cmd/glmbatch/metrics"
	"glmbatch/engine"
	"glmbatch/pipeline"
	"glmbatch/telemetry"
)

// metricsFlags say where a job's metrics for Prometheus go.
type metricsFlags struct {
	file, addr string

	job    *metrics.Job // nil: nobody asked
	out    *metrics.File
	server *metrics.Server
}

func (f *metricsFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.file, "metrics-file", "",
		"write metrics for Prometheus to this `FILE`.prom every 5 s, for node_exporter's textfile collector")
	p.StringVar(&f.addr, "metrics-addr", "",
		"answer Prometheus at /metrics of this `PORT` of localhost, or HOST:PORT (port 0: any)")
}

func (f *metricsFlags) check() error {
	var errs []error
	if f.file != "" {
		if err := metrics.CheckFile(f.file); err != nil {
			errs = append(errs, fmt.Errorf("--metrics-file %w", err))
		} else {
			errs = append(errs, writable("metrics-file", filepath.Dir(f.file)))
		}
	}
	if f.addr != "" {
		addr, err := metrics.Address(f.addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("--metrics-addr %s: %w", f.addr, err))
		}
		f.addr = addr
	}
	return errors.Join(errs...)
}

func (f *metricsFlags) onStep(i engine.StepInfo) {
	if f.job != nil {
		f.job.OnStep(i)
	}
}

// start makes the metrics, if somebody asked for them.
func (f *metricsFlags) start(say *speaker, r *runFlags, m *pipeline.Manifest, pages int, counts *pipeline.Counts,
	gpu func() *telemetry.GPU) (err error) {
	if f.file == "" && f.addr == "" {
		return nil
	}
	shard := ""
	if r.rows.Shards > 1 {
		shard = fmt.Sprintf("%d/%d", r.rows.Shard, r.rows.Shards)
	}
	f.job = metrics.New(metrics.Options{RunID: m.RunID, Shard: shard, Model: m.Model.Name, Device: m.Model.Device,
		Version: versionText(),
		Started: m.Started, Rows: m.ToRow - m.FromRow, Pages: pages, Counts: counts, GPU: gpu})
	if f.file != "" {
		if f.out, err = f.job.Write(f.file); err != nil {
			return fmt.Errorf("--metrics-file: %w", err)
		}
	}
	if f.addr != "" {
		if f.server, err = f.job.Serve(f.addr); err != nil {
			return fmt.Errorf("--metrics-addr: %w", err)
		}
		say.line("metrics at %s", f.server.URL)
	}
	return nil
}

// stop says how the job ended, and ends what start began.
func (f *metricsFlags) stop(say *speaker, code int) {
	if f.job == nil {
		return
	}
	f.job.End(code, time.Now())
	if f.server != nil {
		f.server.Close()
	}
	if f.out != nil {
		if err := f.out.Close(); err != nil {
			say.note("the metrics' last state is not in %s: %v", f.file, err)
		}
	}
}
