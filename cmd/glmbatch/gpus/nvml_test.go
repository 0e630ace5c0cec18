//go:build cgo && cuda

package gpus

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// dgx is a server of eight H200, whose telemetry go-nvml's mock lacks.
func dgx(t *testing.T) nvml.Interface {
	t.Helper()
	s := dgxh200.New()
	for i, d := range s.Devices {
		m := &d.(*server.Device).Device
		m.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
			return uint32(40 + i),
				nvml.SUCCESS
		}
		m.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
		m.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 700_000, nvml.SUCCESS }
		m.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 345, nvml.SUCCESS }
		m.GetMaxClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 1980, nvml.SUCCESS }
		m.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
			return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 1 << 30},
				{Pid: 8, UsedGpuMemory: ^uint64(0)}}[:i%3], nvml.SUCCESS
		}
		m.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			switch {
			case link >= 18:
				return 0, nvml.ERROR_INVALID_ARGUMENT
			case i == 3 && link == 5:
				return nvml.FEATURE_DISABLED, nvml.SUCCESS
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		m.GetNvLinkVersionFunc = func(int) (uint32, nvml.Return) {
			return uint32(nvml.NVLINK_VERSION_4_0),
				nvml.SUCCESS
		}
		m.GetP2PStatusFunc = func(_ nvml.Device, caps nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
			if i == 7 || i == 6 && caps == nvml.P2P_CAPS_INDEX_NVLINK {
				return nvml.P2P_STATUS_CHIPSET_NOT_SUPPORTED, nvml.SUCCESS
			}
			return nvml.P2P_STATUS_OK, nvml.SUCCESS
		}
	}
	return s
}

func TestAsk(t *testing.T) {
	r := ask(dgx(t))
	if len(r.GPUs) != 8 || r.Fault != "" || r.Driver == "" || r.NVML == "" || r.CUDA == "" {
		t.Fatalf("%+v", r)
	}
	g := r.GPUs[2]
	if !strings.Contains(g.Name, "H200") || g.Capability != "9.0" || g.Memory != 144384<<20 || g.Celsius != 42 ||
		g.Power != 0 || g.PowerLimit != 700_000 || g.Clock != 345 || g.MaxClock != 1980 || g.MIG {
		t.Errorf("%+v", g)
	}
	if !slices.Equal(g.Processes, []Process{{7, 1 << 30}, {8, 0}}) {
		t.Errorf("processes %v", g.Processes)
	}
	if want := (NVLinks{Version: "4.0", Up: 18, Rate: 25e9}); g.NVLinks != want {
		t.Errorf("%+v, want %+v", g.NVLinks, want)
	}
	if n := r.GPUs[3].NVLinks; n.Up != 17 || n.Down != 1 {
		t.Errorf("a link is down: %+v", n)
	}
	for i, want := range map[int]Link{0: NVLink, 6: PCIe, 7: NoPeer} {
		if l := r.GPUs[i].Links; len(l) != 8 || l[i] != Self || l[1] != want && i != 1 {
			t.Errorf("links of GPU %d: %v, want %s", i, l, want)
		}
	}
}

// A library that does not start is asked nothing: the mock panics if it is.
func TestAskNoLibrary(t *testing.T) {
	r := ask(&mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }})
	if r.Driver != "" || !strings.Contains(r.Fault, "libnvidia-ml.so.1 was not found") {
		t.Errorf("%+v", r)
	}
}

func TestAskKeepsFaults(t *testing.T) {
	s := dgx(t).(*server.Server)
	s.Devices[3].(*server.Device).GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) {
		return 0,
			nvml.ERROR_GPU_IS_LOST
	}
	r := ask(s)
	if len(r.GPUs) != 8 || !strings.Contains(r.Fault, "clock") {
		t.Errorf("%d GPUs, %q", len(r.GPUs), r.Fault)
	}
}

// Without a driver the real library says so and the process lives.
func TestRead(t *testing.T) {
	r := Read()
	if r.NVML == "" && r.Fault == "" {
		t.Errorf("NVML was not asked and nothing says why: %+v", r)
	}
}

// TestWatch: the GPUs that a job uses are read together, and a lost one says nothing.
func TestWatch(t *testing.T) {
	s := dgx(t).(*server.Server)
	s.ShutdownFunc = func() nvml.Return { return nvml.SUCCESS }
	var places []string
	for i, d := range s.Devices {
		m := &d.(*server.Device).Device
		m.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Bus: uint32(i)}, nvml.SUCCESS }
		if i < 2 {
			places = append(places, fmt.Sprintf("0000:%02x:00.0", i))
		}
		m.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 300_000, nvml.SUCCESS }
		m.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 5_000_000, nvml.SUCCESS }
		m.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) {
			return nvml.ClocksEventReasonGpuIdle | nvml.ClocksEventReasonSwPowerCap, nvml.SUCCESS
		}
	}
	read, end, why := watch(s, places)
	if read == nil {
		t.Fatal(why)
	}
	defer end()
	g := read()
	if g == nil || g.Count != 2 || g.Watts != 300*float64(len(places)) || g.Joules != 5000*float64(len(places)) ||
		g.Clock != 345 || !slices.Equal(g.Throttle, []string{"power cap"}) {
		t.Errorf("%+v", g)
	}
	for _, d := range s.Devices {
		d.(*server.Device).GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) {
			return 0,
				nvml.ERROR_GPU_IS_LOST
		}
	}
	if g := read(); g != nil {
		t.Errorf("of a lost GPU: %+v", g)
	}
	if read, _, why := watch(s, []string{"ffff:00:00.0"}); read != nil || why == "" {
		t.Error("a GPU that is not there is read")
	}
	none := &mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }}
	if read, end, why := watch(none, places); read != nil || !strings.Contains(why, "was not found") {
		t.Errorf("without a library: %s", why)
	} else {
		end()
	}
}
