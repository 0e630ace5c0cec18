//go:build cgo && cuda

package gpus

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"glmbatch/telemetry"
)

// Watch returns what reads the GPUs at these places again and again, and ends that. why
// says why there is none.
func Watch(pci []string) (read func() *telemetry.GPU, end func(), why string) {
	return watch(nvml.New(), pci)
}

// throttles are NVML's bits for why clocks are lower than they could be. That a GPU is
// idle is none.
var throttles = []struct {
	bit  uint64
	name string
}{
	{nvml.ClocksEventReasonApplicationsClocksSetting, "clock setting"}, {nvml.ClocksEventReasonSwPowerCap, "power cap"},
	{nvml.ClocksThrottleReasonHwSlowdown, "hardware slowdown"}, {nvml.ClocksEventReasonSyncBoost, "sync boost"},
	{nvml.ClocksEventReasonSwThermalSlowdown, "thermal (driver)"}, {nvml.ClocksThrottleReasonHwThermalSlowdown,
		"thermal (hardware)"},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"}, {nvml.ClocksEventReasonDisplayClockSetting,
		"display clock"},
	{nvml.ClocksEventReasonBoardLimit, "board limit"}, {nvml.ClocksEventReasonReliability, "reliability"},
}

func watch(lib nvml.Interface, pci []string) (read func() *telemetry.GPU, end func(), why string) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, func() {}, "NVML does not start: " + text(ret)
	}
	q := asker{lib: lib}
	var devices []nvml.Device
	for i := range value(&q, "", "number of GPUs", lib.DeviceGetCount) {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		at := value(&q, "", "place", d.GetPciInfo)
		if slices.Contains(pci, fmt.Sprintf("%04x:%02x:%02x.0", at.Domain, at.Bus, at.Device)) {
			devices = append(devices, d)
		}
	}
	end = func() { lib.Shutdown() }
	if len(devices) == 0 {
		end()
		return nil, func() {}, "NVML knows none of the job's GPUs"
	}
	return func() *telemetry.GPU { return readAll(lib, devices) }, end, ""
}

// readAll reads the GPUs together; nil: one of them told nothing.
func readAll(lib nvml.Interface, devices []nvml.Device) *telemetry.GPU {
	var all telemetry.GPU
	for _, d := range devices {
		q := asker{lib: lib}
		g := telemetry.GPU{
			Watts: float64(value(&q, "nvmlDeviceGetPowerUsage", "power", d.GetPowerUsage)) / 1e3,
			Joules: float64(value(&q, "nvmlDeviceGetTotalEnergyConsumption", "energy",
				d.GetTotalEnergyConsumption)) / 1e3,
			Clock: int(value(&q, "nvmlDeviceGetClockInfo", "clock",
				func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_SM) })),
			Celsius: int(value(&q, "nvmlDeviceGetTemperature", "temperature",
				func() (uint32, nvml.Return) { return d.GetTemperature(nvml.TEMPERATURE_GPU) })),
			Memory: int64(value(&q, "", "memory", d.GetMemoryInfo).Used),
		}
		g.MemoryClock = int(value(&q, "nvmlDeviceGetClockInfo", "memory clock",
			func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_MEM) }))
		// Old drivers have this name, new ones both.
		mask := value(&q, "nvmlDeviceGetCurrentClocksThrottleReasons", "throttling", func() (uint64, nvml.Return) {
			//lint:ignore SA1019 the new name is missing in drivers before 535
			return d.GetCurrentClocksThrottleReasons()
		})
		for _, t := range throttles {
			if mask&t.bit != 0 {
				g.Throttle = append(g.Throttle, t.name)
			}
		}
		if len(q.errs) > 0 {
			return nil
		}
		all.Join(g)
	}
	return &all
}
