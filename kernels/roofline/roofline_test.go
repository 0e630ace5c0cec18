package roofline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/kernels"
)

func TestBound(t *testing.T) {
	m := Machine{Read: 100e9, Link: 10e9, FLOPs: map[kernels.Pipe]int64{kernels.OnMatrix: 1e12, kernels.OnVector: 1e11}}
	for _, c := range []struct {
		name string
		cost kernels.Cost
		pipe kernels.Pipe
		want int64
	}{
		{"memory", kernels.Cost{HBM: 1e6, FLOPs: 1e6}, kernels.OnMatrix, 10_000},
		{"wire", kernels.Cost{HBM: 1e6, Wire: 1e6}, kernels.OnMatrix, 100_000},
		{"matrix pipe", kernels.Cost{HBM: 1e3, FLOPs: 1e9}, kernels.OnMatrix, 1_000_000},
		{"vector pipe", kernels.Cost{HBM: 1e3, FLOPs: 1e9}, kernels.OnVector, 10_000_000},
		{"a pipe of unknown rate bounds nothing", kernels.Cost{HBM: 1e3, FLOPs: 1e12}, kernels.OnFP4, 10},
		{"nothing to do", kernels.Cost{}, kernels.OnMatrix, 0},
	} {
		if got := m.Bound(c.cost, c.pipe); got != c.want {
			t.Errorf("%s: %d ns, want %d", c.name, got, c.want)
		}
	}
}

// TestOf holds which machine a device's name means.
func TestOf(t *testing.T) {
	for device, want := range map[string]string{
		"NVIDIA A100-SXM4-40GB": "a100-40gb", "NVIDIA A100-SXM4-80GB": "a100", "NVIDIA H100 80GB HBM3": "h100",
		"NVIDIA H100 PCIe": "h100-pcie", "NVIDIA H100 NVL": "h100-nvl",
		"NVIDIA H200": "h200", "NVIDIA B200": "b200", "NVIDIA GB200": "gb200",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000",
		"AMD Instinct MI250X":                          "mi250x", "AMD Instinct MI300X": "mi300x",
		"AMD_Instinct_MI300X_OAM": "mi300x", "AMD Instinct MI325X": "mi325x", "AMD Instinct MI355X": "mi355x",
		"NVIDIA GH200 480GB": "", "NVIDIA RTX 6000 Ada Generation": "", "Tesla V100-SXM2-16GB": "", "": "",
	} {
		if m, ok := Of(device); m.Name != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", device, m.Name, want)
		}
	}
}

// Every named machine bounds every kernel of the table that does something.
func TestNamedMachinesBoundTheTable(t *testing.T) {
	for _, name := range Names() {
		m, ok := Named(name)
		if !ok {
			t.Fatalf("no machine %q", name)
		}
		for _, k := range kernels.Table {
			d := k.Examples[len(k.Examples)-1]
			if c := k.Cost(d); c.HBM > 1e4 && m.Bound(c, k.Pipe) <= 0 {
				t.Errorf("%s does not bound %s %+v", name, k.Name, d)
			}
		}
	}
	if _, ok := Named("abacus"); ok {
		t.Error("an unknown machine has a name")
	}
}

// The probes do what their names say: a rate cannot be below what the slowest
// computer that runs Go has, nor above what any has.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 200 MB")
	}
	path := filepath.Join(t.TempDir(), "cache", "machine.json")
	m := Cached(path, 0)
	if m.Read < 1e8 || m.Read > 1e14 || m.Copy < 1e8 || m.FLOPs[kernels.OnVector] < 1e8 ||
		m.FLOPs[kernels.OnVector] > 1e16 {
		t.Errorf("impossible machine %+v", m)
	}
	if again := Cached(path, 0); !cmp.Equal(m, again) {
		t.Errorf("the cache changed the machine: %s", cmp.Diff(m, again))
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if again := Cached(path, 0); again.Read < 1e8 {
		t.Errorf("a damaged cache was used: %+v", again)
	}
}

func BenchmarkMeasure(b *testing.B) {
	for b.Loop() {
		m := Measure(0)
		b.ReportMetric(float64(m.Read)/1e9, "read-GB/s")
		b.ReportMetric(float64(m.Copy)/1e9, "copy-GB/s")
		b.ReportMetric(float64(m.FLOPs[kernels.OnVector])/1e9, "GFLOP/s")
	}
}
