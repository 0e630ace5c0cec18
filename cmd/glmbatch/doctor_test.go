package main

import (
	"encoding/json"
	"strings"
	"testing"

	"glmbatch/cmd/glmbatch/gpus"
	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
)

func TestDoctor(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // it measures the memory and keeps the result
	t.Run("text", func(t *testing.T) {
		code, out, errs := glmbatch("doctor", "--device", "cpu", "--model", writeTiny(t), "--tp", "2")
		if code != 0 || errs != "" {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		for _, want := range []string{"program   glmbatch ", "cpu       ", " threads, ", "GFLOP/s",
			"each of 2 ranks has ", "ready: glmbatch runs on ", "fits at --tp 2 with"} {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
		narrow(t, out)
	})
	t.Run("json", func(t *testing.T) {
		code, out, errs := glmbatch("doctor", "--device", "cpu", "--config", "tiny", "--kv-cache", "fp8",
			"--format", "json")
		var d diagnosis
		if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 {
			t.Fatalf("exit code %d: %s%v", code, errs, err)
		}
		if d.Schema != "glmbatch.doctor/1" || !d.OK || d.Device != "cpu" || d.CPU.Threads < 1 || d.CPU.Read <= 0 ||
			d.CPU.SIMD == "" || d.CUDA != cuda.Built {
			t.Errorf("%+v", d)
		}
		// 6 layers of a latent of 64+4+2·16 bytes and a key of 32+4.
		if m := d.Model; m == nil || !m.Fits || m.Token != 6*(100+36) || m.Tokens%kernels.PageTokens != 0 ||
			m.Tokens == 0 {
			t.Errorf("%+v", d.Model)
		}
	})
	t.Run("no GPU", func(t *testing.T) {
		if cuda.Available() == nil {
			t.Skip("there is one")
		}
		code, out, errs := glmbatch("doctor", "--device", "cuda")
		if code != exitDevice || !strings.Contains(out, "not ready: no GPU can be used: ") ||
			!strings.Contains(out, "→ ") || !strings.Contains(errs, "not ready") {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
	})
	t.Run("does not fit", func(t *testing.T) {
		code, out, _ := glmbatch("doctor", "--device", "cpu", "--model",
			synthesize(t, "--set", "num_attention_heads=4", "--set", "num_key_value_heads=4"), "--tp", "8")
		if code != exitDevice || !strings.Contains(out, "cannot run at --tp 8") ||
			!strings.Contains(out, "give another --tp") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

func narrow(t *testing.T, out string) {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestDoctorUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--format", "csv"}, `--format "csv"`},
		{[]string{"--kv-cache", "int4"}, `--kv-cache "int4"`},
		{[]string{"--config", "tiny", "--model", "x"}, "exclude each other"},
		{[]string{"x"}, "takes no arguments"},
	} {
		if code, _, errs := glmbatch(append([]string{"doctor", "--device", "cpu"}, c.args...)...); code != exitInput ||
			!strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d: %s", c.args, code, errs)
		}
	}
}

// servers of n H200.
func h200s(n int, free int64) *diagnosis {
	d := &diagnosis{Device: "cuda", Opened: &kernels.Info{Kind: "cuda", Name: "NVIDIA H200", Memory: 150e9}}
	for i := range n {
		g := gpus.GPU{Name: "NVIDIA H200", Capability: "9.0", Memory: 150e9, Free: free, PowerLimit: 700_000,
			Clock: 345, MaxClock: 1980}
		for j := range n {
			l := gpus.NVLink
			if i == j {
				l = gpus.Self
			}
			g.Links = append(g.Links, l)
		}
		d.GPU.GPUs = append(d.GPU.GPUs, g)
	}
	return d
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name      string
		d         *diagnosis
		tp, per   int
		kv        string
		fits      bool
		ranks     int
		low, high int64  // cache tokens
		fault     string // a part of it
	}{
		// 61.1 GB of weights on a rank of eight, 1.4 GB for a step; 109,824 B a token.
		{"eight", h200s(8, 149e9), 8, 0, "bf16", true, 1, 730_000, 750_000, ""},
		{"eight, FP8", h200s(8, 149e9), 8, 0, "fp8", true, 1, 1_300_000, 1_340_000, ""},
		{"four", h200s(4, 149e9), 8, 0, "bf16", true, 2, 75_000, 110_000, ""},
		{"one", h200s(1, 149e9), 8, 0, "bf16", false, 8, 0, 0, "the weights of 8 ranks take"},
		{"busy", h200s(8, 50e9), 8, 0, "bf16", false, 1, 0, 0, "a GPU has 50.0 GB"},
		{"too few places", h200s(2, 149e9), 8, 2, "bf16", false, 2, 0, 1 << 40,
			"8 ranks do not find a place on 2 GPUs"},
		{"no split", h200s(8, 149e9), 6, 0, "bf16", false, 0, 0, 0, "not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := fitOf(&doctorFlags{config: "glm-5", tp: c.tp, kvCache: c.kv,
				device: deviceFlags{kind: "cuda", ranksPerGPU: c.per}}, c.d)
			if err != nil {
				t.Fatal(err)
			}
			if m.Fits != c.fits || m.Ranks != c.ranks || m.Tokens < c.low || m.Tokens > c.high ||
				!strings.Contains(m.Fault, c.fault) {
				t.Errorf("%+v", m)
			}
			if c.tp == 8 && (m.Weights < 60e9 || m.Weights > 62e9) {
				t.Errorf("a rank has %d bytes of weights", m.Weights)
			}
			c.d.Model = m
			c.d.judge("")
			if c.d.OK != c.fits || len(c.d.Problems) == 0 != c.fits {
				t.Errorf("%s, %+v", c.d.Verdict, c.d.Problems)
			}
			var s strings.Builder
			if err := c.d.print(&s); err != nil {
				t.Fatal(err)
			}
			narrow(t, s.String())
			if n := len(c.d.GPU.GPUs); n > 1 && !strings.Contains(s.String(), "NVLink among all") {
				t.Errorf("links are not told:\n%s", s.String())
			}
		})
	}
}

func TestDoctorNamesGPUs(t *testing.T) {
	d := h200s(3, 100e9)
	d.GPU.Driver, d.GPU.CUDA, d.GPU.NVML = "580.65.06", "13.0", "13.580.65.06"
	d.GPU.GPUs[1].Processes = []gpus.Process{{PID: 77, Memory: 49e9}, {PID: 78}}
	d.GPU.GPUs[2].MIG = true
	d.GPU.GPUs[0].Links[2], d.GPU.GPUs[2].Links[0] = gpus.NoPeer, gpus.NoPeer
	d.GPU.GPUs[1].Links[2], d.GPU.GPUs[2].Links[1] = gpus.PCIe, gpus.PCIe
	for i := range 3 {
		d.GPU.GPUs[i].NVLinks = gpus.NVLinks{Version: "4.0", Up: 18, Rate: 25e9}
	}
	d.GPU.GPUs[1].NVLinks.Up, d.GPU.GPUs[1].NVLinks.Down = 16, 2
	d.GPU.Hidden, d.NCCL = 5, "2.27.7"
	d.GPU.GPUs[0].Celsius, d.GPU.GPUs[0].Power = 34, 112_000
	d.lookAtEach()
	d.judge("")
	var s strings.Builder
	if err := d.print(&s); err != nil {
		t.Fatal(err)
	}
	narrow(t, s.String())
	text := strings.Join(strings.Fields(s.String()), " ")
	for _, want := range []string{"NVIDIA 580.65.06, for CUDA 13.0; NVML 13.580.65.06",
		"gpu 0 NVIDIA H200, compute capability 9.0, 100 GB of 150 GB free, 34 °C, 112 of 700 W, 345 of 1,980 MHz",
		"GPU 1 is used by process 77 (49.0 GB), process 78: 100 GB of 150 GB are free", "GPU 2 is cut into instances",
		"cannot reach each other's memory: 0 and 2",
		"gpu 2: PCIe to 1; no peer access to 0", "gpu 0 2: 18 NVLinks 4.0, 450 GB/s in each direction",
		"gpu 1: 16 NVLinks 4.0, 400 GB/s in each direction; 2 are down",
		"2 of 18 NVLinks of GPU 1 are down", "the machine has 5 more, which CUDA_VISIBLE_DEVICES hides", "nccl 2.27.7",
		"ready: glmbatch runs on 3 GPUs, NVIDIA H200"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, s.String())
		}
	}
}
