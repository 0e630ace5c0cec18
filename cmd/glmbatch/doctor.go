package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"glmbatch/cmd/glmbatch/gpus"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/cuda"
	"glmbatch/kernels/roofline"
	"glmbatch/telemetry"
	"glmbatch/units"
)

// doctorFlags are the options of glmbatch doctor.
type doctorFlags struct {
	model, config string
	tp            int
	kvCache       string
	dense         string
	layout        string
	device        deviceFlags
	format        string
}

func newDoctorCommand() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine and this program can run, and what is missing",
		Long: `doctor prints the program's build, the CPU, memory, disk space, the NVIDIA driver
and each GPU, what is missing and what to do about it, and ends with a verdict. The
CPU is measured each time; report and bench go by the last measurement.

With --model, or with --config for a model that is not here yet, it also says whether
the model fits at --tp, and how many tokens its caches can hold. --config counts with
a release's formats: routed experts NVFP4, all else BF16.

It exits with 0 if the device of --device can be used, and the model fits; else with 5.`,
		Example: `  glmbatch doctor
  glmbatch doctor --model models/GLM-5-NVFP4 --tp 8
  # would the full model fit here, with FP8 caches?
  glmbatch doctor --config glm-5 --tp 8 --kv-cache fp8
  glmbatch doctor --device cuda --format json | jq .problems`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return runDoctor(&f, c.OutOrStdout()) },
	}
	s := c.Flags()
	s.StringVar(&f.model, "model", "", "a checkpoint's folder: does it fit?")
	s.StringVar(&f.config, "config", "", "glm-5, glm-5.2, tiny, or a config.json or its folder: would it fit?")
	s.IntVar(&f.tp, "tp", 8, "ranks that share the model: 1, 2, 4 or 8")
	s.StringVar(&f.layout, "layout", string(glm5.Latency), layoutUsage)
	s.StringVar(&f.kvCache, "kv-cache", "bf16", "format of the caches: bf16, fp8 or f32")
	s.StringVar(&f.dense, "dense-weights", "bf16", "bf16, or fp8: dense weights as with that option of run")
	f.device.add(s)
	s.StringVar(&f.format, "format", "text", "text or json")
	return c
}

// diagnosis is what is printed. Sizes are bytes, rates a second; 0 is unknown.
type diagnosis struct {
	Schema   string            `json:"schema"`
	Program  map[string]string `json:"program"`
	CUDA     bool              `json:"cuda_built"`
	OS       string            `json:"os"`
	Arch     string            `json:"arch"`
	CPU      cpuFacts          `json:"cpu"`
	Disk     diskFacts         `json:"disk"`
	GPU      gpus.Report       `json:"gpu"`
	NCCL     string            `json:"nccl"`       // version; "": not looked for, or not there
	Opened   *kernels.Info     `json:"opened_gpu"` // the first GPU as the program sees it; null: none
	Model    *fit.Fit          `json:"model"`      // null: none was given
	Device   string            `json:"device"`     // that would run: cpu or cuda
	Problems []problem         `json:"problems"`
	OK       bool              `json:"ok"`
	Verdict  string            `json:"verdict"`
}

type cpuFacts struct {
	Name      string `json:"name"`
	Threads   int    `json:"threads"`
	SIMD      string `json:"simd"`
	Read      int64  `json:"read_bytes"` // memory
	FLOPs     int64  `json:"flops"`      // float32
	Memory    int64  `json:"memory_bytes"`
	Available int64  `json:"available_bytes"`
}

type diskFacts struct {
	Folder string `json:"folder"`
	Free   int64  `json:"free_bytes"`
}

// problem is something that is missing or stands in the way.
type problem struct {
	Code   string `json:"code"`
	Text   string `json:"text"`
	Remedy string `json:"remedy"`
}

func (d *diagnosis) problem(code, text, remedy string) {
	d.Problems = append(d.Problems, problem{code, text, remedy})
}

func runDoctor(f *doctorFlags, stdout io.Writer) error {
	errs := []error{oneOf("format", f.format, "text", "json"), oneOf("kv-cache", f.kvCache, "bf16", "fp8", "f32"),
		oneOf("layout", f.layout, layouts...), oneOf("dense-weights", f.dense, "bf16", "fp8"),
		checkTP(f.tp), f.device.validate()}
	if f.model != "" && f.config != "" {
		errs = append(errs, errors.New("--config and --model exclude each other"))
	}
	if err := withCode(exitInput, errors.Join(errs...)); err != nil {
		return err
	}
	d, err := diagnose(f)
	if err != nil {
		return err
	}
	if f.format == "json" {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(d)
	} else {
		err = d.print(stdout)
	}
	if err == nil && !d.OK {
		err = withCode(exitDevice, errors.New("not ready, as the verdict says"))
	}
	return err
}

// diagnose looks at everything and then judges.
func diagnose(f *doctorFlags) (*diagnosis, error) {
	d := &diagnosis{Schema: "glmbatch.doctor/1", Program: versions(), CUDA: cuda.Built, OS: runtime.GOOS,
		Arch: runtime.GOARCH, Problems: []problem{}}
	if err := d.lookAtCPU(f); err != nil {
		return nil, err
	}
	d.lookAtDisk()
	why := d.lookAtGPUs(f.device.kind == "cuda")
	d.Device = "cpu"
	if f.device.kind == "cuda" || f.device.kind == "auto" && why == "" {
		d.Device = "cuda"
	}
	if f.model != "" || f.config != "" {
		m, err := fitOf(f, d)
		if err != nil {
			return nil, err
		}
		d.Model = m
	}
	d.judge(why)
	return d, nil
}

func (d *diagnosis) lookAtCPU(f *doctorFlags) error {
	ds, err := cpu.Open(1, cpu.Options{Threads: f.device.threads})
	if err != nil {
		return withCode(exitInput, err)
	}
	info := ds[0].Info()
	if err := ds[0].Close(); err != nil {
		return err
	}
	d.CPU = cpuFacts{Name: info.Name, Threads: info.Threads, SIMD: info.Detail, Memory: info.Memory,
		Available: telemetry.AvailableMemory()}
	var m roofline.Machine
	if path, err := machineFile(); err == nil {
		m = roofline.Renewed(path, 0)
	} else {
		m = roofline.Measure(f.device.threads)
	}
	d.CPU.Read, d.CPU.FLOPs = m.Read, m.FLOPs[kernels.OnVector]
	if info.Detail == "go" {
		d.problem("simd", "the CPU device has no SIMD loops for this processor and is many times slower than with them",
			"use a processor with AVX2 or AVX-512")
	}
	return nil
}

const littleDisk = 1 << 30

func (d *diagnosis) lookAtDisk() {
	d.Disk.Folder = workingFolder()
	free, ok := checkpoint.FreeBytes(d.Disk.Folder)
	if !ok {
		return
	}
	d.Disk.Free = free
	if free < littleDisk {
		d.problem("disk", fmt.Sprintf("the disk of the working folder has %s left", units.Bytes(free)),
			"run where there is space for outputs and timelines, or free some")
	}
}

// lookAtGPUs returns why no GPU can be used; "": one can. That the program has
// no CUDA is a problem only where a GPU is wanted, or there to be used.
func (d *diagnosis) lookAtGPUs(wanted bool) string {
	d.GPU = gpus.Read()
	if !cuda.Built {
		const why = "this program was built without CUDA"
		if wanted || d.GPU.Driver != "" || len(d.GPU.GPUs) > 0 {
			d.problem("cuda.build", why, "build it with 'make cuda'")
		}
		return why
	}
	if err := cuda.Available(); err != nil {
		remedy := "install NVIDIA's driver, 525 or newer; in a container, start it with the GPUs (--gpus all)"
		if d.GPU.Driver != "" {
			remedy = "the driver " + d.GPU.Driver +
				" is loaded: install the libcuda.so.1 of that version, or give the container its compute capability"
		}
		d.problem("cuda.driver", err.Error(), remedy)
		return err.Error()
	}
	if d.GPU.Fault != "" {
		d.problem("nvml", d.GPU.Fault,
			"GPUs can be used all the same; install libnvidia-ml.so.1 of the driver's version to see their state")
	}
	d.lookAtLinks()
	d.lookAtEach()
	info, err := tryGPU()
	if err != nil {
		d.problem("cuda.open", err.Error(),
			"a GPU must be free to open and of compute capability 9.0 or newer; see which processes use it with "+
				"nvidia-smi")
		return err.Error()
	}
	d.Opened = &info
	return ""
}

// lookAtLinks keeps the GPUs that ranks are placed on, and what the driver says
// of their ways to each other.
func (d *diagnosis) lookAtLinks() {
	seen, err := cuda.Visible()
	if err != nil {
		d.problem("cuda.visible", err.Error(), "see nvidia-smi for the state of the GPUs")
		return
	}
	var places []string
	for _, g := range seen {
		places = append(places, g.PCI)
	}
	d.GPU.See(places)
	for i, g := range d.GPU.GPUs {
		for j, reached := range seen[min(i, len(seen)-1)].Reaches {
			if !reached && j < len(g.Links) {
				g.Links[j] = gpus.NoPeer
			}
		}
	}
	if len(seen) > 1 {
		if d.NCCL, err = cuda.NCCLVersion(""); err != nil {
			d.NCCL = ""
		}
	}
}

// tryGPU opens the first GPU, which loads the kernels too.
func tryGPU() (kernels.Info, error) {
	runtime.LockOSThread() // contexts are current per thread
	defer runtime.UnlockOSThread()
	ds, err := cuda.Open(1, cuda.Options{})
	if err != nil {
		return kernels.Info{}, err
	}
	return ds[0].Info(), ds[0].Close()
}

// lookAtEach names what stands in the way on single GPUs.
func (d *diagnosis) lookAtEach() {
	var apart []string
	for i, g := range d.GPU.GPUs {
		if len(g.Processes) > 0 {
			d.problem("gpu.busy", fmt.Sprintf("GPU %d is used by %s: %s of %s are free", i, processes(g.Processes),
				units.Bytes(g.Free), units.Bytes(g.Memory)),
				"end them, or leave that GPU out with CUDA_VISIBLE_DEVICES")
		}
		if g.MIG {
			d.problem("gpu.mig", fmt.Sprintf("GPU %d is cut into instances (MIG)", i),
				"give the program one instance with CUDA_VISIBLE_DEVICES, or turn MIG off")
		}
		if g.NVLinks.Down > 0 {
			d.problem("gpu.nvlink", fmt.Sprintf("%d of %d NVLinks of GPU %d are down", g.NVLinks.Down,
				g.NVLinks.Up+g.NVLinks.Down, i),
				"see nvidia-smi nvlink -s and -e; a GPU with fewer links slows all ranks down")
		}
		for j, l := range g.Links {
			if l == gpus.NoPeer && j > i {
				apart = append(apart, fmt.Sprintf("%d and %d", i, j))
			}
		}
	}
	if len(apart) > 0 {
		d.problem("gpu.peers", "GPUs cannot reach each other's memory: "+strings.Join(apart, ", "),
			"ranks need peer access: use GPUs of one switch, or --ranks-per-gpu to put the ranks on one")
	}
}

func processes(ps []gpus.Process) string {
	var names []string
	for _, p := range ps {
		s := fmt.Sprintf("process %d", p.PID)
		if p.Memory > 0 {
			s += " (" + units.Bytes(p.Memory) + ")"
		}
		names = append(names, s)
	}
	return strings.Join(names, ", ")
}

// judge ends the diagnosis. why says what keeps GPUs from being used.
func (d *diagnosis) judge(why string) {
	on := d.CPU.Name
	if d.Device == "cuda" {
		if why != "" {
			d.Verdict = "not ready: no GPU can be used: " + why
			return
		}
		on = d.Opened.Name
		if n := len(d.GPU.GPUs); n > 1 {
			on = fmt.Sprintf("%d GPUs, %s", n, on)
		}
	}
	d.OK, d.Verdict = true, "ready: glmbatch runs on "+on
	if m := d.Model; m != nil {
		d.OK = m.Fits
		if m.Fits {
			d.Verdict += fmt.Sprintf("; %s fits at --tp %d with %s cache tokens", m.Name, m.TP, units.Digits(m.Tokens))
			return
		}
		d.Verdict = fmt.Sprintf("not ready: %s cannot run at --tp %d on %s", m.Name, m.TP, on)
		d.problem("model.fit", m.Fault, m.Remedy())
	}
}
