package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"glmbatch/datasets"
	"glmbatch/replay/importer"
	"glmbatch/replay/record"
	"glmbatch/replay/report"
)

// recordFlags are the options of glmbatch record.
type recordFlags struct {
	window record.Options
	out    string
	rules  string
}

func newRecordCommand() *cobra.Command {
	f := recordFlags{window: record.Options{Steps: 5, Requests: 8, Warmup: 16, Timeout: 5 * time.Minute}}
	c := &cobra.Command{
		Use:   "record --url URL | -- CMD...",
		Short: "Record steps of a running SGLang or vLLM server, and say what they cost",
		Long: `record --url sends a running server requests until all of them are decoding, asks its
profiler for a few steps, waits for the trace of every rank, imports them and prints the
report. The folder for traces must be one that the server writes and this program reads.
SGLang is told the folder. vLLM must have been started with it:

  vllm serve MODEL --profiler-config '{"profiler":"torch","torch_profiler_dir":"DIR"}'
  VLLM_TORCH_PROFILER_DIR=DIR vllm serve MODEL        # before 0.13

record -- CMD... runs a command under Nsight Systems (nsys must be in PATH) and reports on that.

An interrupt stops the profiler, too. A server's API key is read from GLMBATCH_API_KEY.`,
		Example: `  glmbatch record --url http://127.0.0.1:30000 --steps 5
  # vLLM, under the load that it has
  glmbatch record --url http://127.0.0.1:8000 --traces /tmp/traces --requests 0
  glmbatch record --out bench -- python bench.py`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case f.window.URL == "" && len(args) == 0:
				return withCode(exitInput,
					fmt.Errorf("nothing to record: give --url, or a command behind -- (see '%s --help')",
						c.CommandPath()))
			case f.window.URL != "" && len(args) > 0:
				return withCode(exitInput, errors.New("give --url or a command, not both"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.window.Log = c.ErrOrStderr()
			err := f.run(c.Context(), args, c.OutOrStdout())
			if c.Context().Err() != nil {
				return withCode(exitInterrupted,
					errors.New("interrupted: the profiler is stopped, nothing is reported"))
			}
			return err
		},
	}
	c.Flags().StringVar(&f.window.URL, "url", "", "of the server: http://HOST:PORT")
	c.Flags().StringVarP(&f.out, "out", "o", "recording",
		"`FOLDER` for traces and the timeline; it must not have a timeline yet")
	c.Flags().IntVar(&f.window.Steps, "steps", f.window.Steps, "decode steps to record")
	c.Flags().IntVar(&f.window.Requests, "requests", f.window.Requests,
		"sequences to decode meanwhile; 0: the server has load of its own")
	c.Flags().IntVar(&f.window.Warmup, "warmup", f.window.Warmup,
		"tokens that each sequence has got before recording begins")
	c.Flags().IntVar(&f.window.Ranks, "ranks", 0, "traces to wait for; 0: as many as the server says, or that come")
	c.Flags().StringVar(&f.window.Traces, "traces", "",
		"`FOLDER` that the server writes traces to, as it sees it from here (SGLang: OUT/traces)")
	c.Flags().BoolVar(&f.window.Stacks, "stacks", false,
		"also record Python frames and shapes (SGLang); the host gets slower")
	c.Flags().DurationVar(&f.window.Timeout, "timeout", f.window.Timeout, "give up after this long")
	c.Flags().StringVar(&f.rules, "rules", "", "rules for classes of kernels, as for import, from this `FILE`")
	return c
}

func (f *recordFlags) run(ctx context.Context, command []string, stdout io.Writer) error {
	timelineFile := filepath.Join(f.out, "timeline."+datasets.Parquet)
	if _, err := os.Lstat(timelineFile); err == nil {
		return withCode(exitInput, fmt.Errorf("%s exists: say another --out", timelineFile))
	}
	imports := importFlags{out: timelineFile, rules: f.rules}
	if err := imports.readRules(); err != nil {
		return withCode(exitInput, err)
	}
	var files []string
	var err error
	reader := importer.Nsys
	if len(command) > 0 {
		files, err = f.nsys(ctx, command)
	} else {
		reader = importer.Torch
		files, err = f.server(ctx)
	}
	if err != nil {
		return withCode(exitInput, err)
	}
	imports.rules = "" // they are read
	// A window that was cut out of a server's life may lack the ends of collectives.
	imports.options.AllowUnaligned = true
	if err := imports.run(reader, files, f.window.Log); err != nil {
		return err
	}
	r, err := report.Load(timelineFile, report.Options{})
	if err != nil {
		return withCode(exitInput, err)
	}
	if err := r.Write(stdout, report.Formats[0].Name, styleOf(stdout)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\nnext: %s report %s --by kernel\n", callName(), timelineFile)
	return err
}

// server records a running server.
func (f *recordFlags) server(ctx context.Context) ([]string, error) {
	o := f.window
	o.Key = os.Getenv("GLMBATCH_API_KEY")
	if o.Traces == "" {
		o.Traces = filepath.Join(f.out, "traces")
	}
	var err error
	if o.Traces, err = filepath.Abs(o.Traces); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return nil, err
	}
	rec, err := record.Window(ctx, o)
	if err != nil {
		return nil, err
	}
	return rec.Files, nil
}

// nsys records a command with Nsight Systems.
func (f *recordFlags) nsys(ctx context.Context, command []string) ([]string, error) {
	program, err := exec.LookPath("nsys")
	if err != nil {
		return nil,
			errors.New("nsys is not in PATH: install Nsight Systems' command line (nsight-systems-cli), or record a " +
				"server with --url")
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return nil, err
	}
	recorded, exported := filepath.Join(f.out, "profile.nsys-rep"), filepath.Join(f.out, "profile.sqlite")
	for _, args := range [][]string{
		append([]string{"profile", "--trace=cuda,nvtx", "--cuda-graph-trace=node", "--force-overwrite=true", "--output",
			recorded}, command...),
		{"export", "--type", "sqlite", "--force-overwrite=true", "--output", exported, recorded},
	} {
		if err := f.runGroup(ctx, program, args); err != nil {
			return nil, fmt.Errorf("nsys %s: %w", args[0], err)
		}
	}
	return []string{exported}, nil
}

// runGroup runs a program in a process group of its own. When ctx ends the group is
// interrupted, and soon killed: nsys and what it runs do not outlive this program.
func (f *recordFlags) runGroup(ctx context.Context, program string, args []string) error {
	c := exec.CommandContext(ctx, program, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, f.window.Log, f.window.Log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func(s syscall.Signal) error { return syscall.Kill(-c.Process.Pid, s) }
	ended := make(chan struct{})
	c.Cancel = func() error {
		go func() {
			select {
			case <-time.After(600 * time.Millisecond):
				_ = group(syscall.SIGKILL)
			case <-ended:
			}
		}()
		return group(syscall.SIGINT)
	}
	c.WaitDelay = 800 * time.Millisecond
	err := c.Run()
	close(ended)
	if ctx.Err() != nil && c.Process != nil {
		_ = group(syscall.SIGKILL) // what the program left behind
	}
	return err
}
