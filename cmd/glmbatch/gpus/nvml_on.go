//go:build cgo && cuda

package gpus

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func read() Report { return ask(nvml.New()) }

// ask asks a library. After an Init that failed nothing may be called: the
// library's functions are not there and the process would end.
func ask(lib nvml.Interface) (r Report) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		r.Fault = "NVML does not start: " + text(ret)
		return r
	}
	defer lib.Shutdown()
	q := asker{lib: lib}
	r.Driver = value(&q, "", "driver version", lib.SystemGetDriverVersion)
	r.NVML = value(&q, "", "NVML version", lib.SystemGetNVMLVersion)
	if v := value(&q, "", "CUDA version", lib.SystemGetCudaDriverVersion); v > 0 {
		r.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	n := value(&q, "", "number of GPUs", lib.DeviceGetCount)
	var devices []nvml.Device
	for i := range n {
		d, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			q.failed(fmt.Sprintf("GPU %d", i), ret)
			continue
		}
		devices = append(devices, d)
	}
	for _, d := range devices {
		r.GPUs = append(r.GPUs, q.gpu(d, devices))
	}
	if err := errors.Join(q.errs...); err != nil {
		r.Fault = err.Error()
	}
	if r.NVML == "" {
		r.NVML = "unknown"
	}
	return r
}

// asker keeps what a library did not tell.
type asker struct {
	lib  nvml.Interface
	errs []error
}

func (q *asker) failed(what string, ret nvml.Return) {
	q.errs = append(q.errs, fmt.Errorf("%s: %s", what, text(ret)))
}

func text(ret nvml.Return) string {
	if ret == nvml.ERROR_LIBRARY_NOT_FOUND {
		return "libnvidia-ml.so.1 was not found"
	}
	return nvml.ErrorString(ret)
}

// value calls f. symbol is the library's function where older drivers lack it,
// as a call of a missing function ends the process; "": all have it.
func value[T any](q *asker, symbol, what string, f func() (T, nvml.Return)) (v T) {
	if symbol != "" && q.lib.Extensions().LookupSymbol(symbol) != nil {
		return v
	}
	x, ret := f()
	switch ret {
	case nvml.SUCCESS:
		return x
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND:
	default:
		q.failed(what, ret)
	}
	return v
}

func (q *asker) gpu(d nvml.Device, all []nvml.Device) GPU {
	g := GPU{Name: value(q, "", "name", d.GetName)}
	g.Capability = value(q, "nvmlDeviceGetCudaComputeCapability", "compute capability", func() (string, nvml.Return) {
		major, minor, ret := d.GetCudaComputeCapability()
		return fmt.Sprintf("%d.%d", major, minor), ret
	})
	pci := value(q, "", "place", d.GetPciInfo)
	g.PCI = fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	g.NVLinks = q.nvlinks(d)
	m := value(q, "", "memory", d.GetMemoryInfo)
	g.Memory, g.Free = int64(m.Total), int64(m.Free)
	g.Celsius = int(value(q, "nvmlDeviceGetTemperature", "temperature",
		func() (uint32, nvml.Return) { return d.GetTemperature(nvml.TEMPERATURE_GPU) }))
	g.Power = int(value(q, "nvmlDeviceGetPowerUsage", "power", d.GetPowerUsage))
	g.PowerLimit = int(value(q, "nvmlDeviceGetEnforcedPowerLimit", "power limit", d.GetEnforcedPowerLimit))
	g.Clock = int(value(q, "nvmlDeviceGetClockInfo", "clock",
		func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_SM) }))
	g.MaxClock = int(value(q, "nvmlDeviceGetMaxClockInfo", "fastest clock",
		func() (uint32, nvml.Return) { return d.GetMaxClockInfo(nvml.CLOCK_SM) }))
	g.MIG = value(q, "nvmlDeviceGetMigMode", "MIG mode", func() (bool, nvml.Return) {
		now, _, ret := d.GetMigMode()
		return now == nvml.DEVICE_MIG_ENABLE, ret
	})
	for _, p := range value(q, "", "processes", d.GetComputeRunningProcesses) {
		x := Process{PID: int(p.Pid)}
		if p.UsedGpuMemory < 1<<60 { // all ones where the driver does not know
			x.Memory = int64(p.UsedGpuMemory)
		}
		g.Processes = append(g.Processes, x)
	}
	for _, other := range all {
		g.Links = append(g.Links, q.link(d, other))
	}
	return g
}

// nvlinkVersions are by NVML's numbers for them, with what the maker says a link
// moves in one direction: drivers in virtual machines do not tell.
var nvlinkVersions = map[uint32]struct {
	name string
	rate int64 // bytes/s
}{1: {"1.0", 20e9}, 2: {"2.0", 25e9}, 3: {"2.2", 25e9}, 4: {"3.0", 25e9}, 5: {"3.1", 25e9}, 6: {"4.0", 25e9},
	7: {"5.0", 50e9}, 8: {"6.0", 0}}

func (q *asker) nvlinks(d nvml.Device) (n NVLinks) {
	for _, symbol := range []string{"nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion"} {
		if q.lib.Extensions().LookupSymbol(symbol) != nil {
			return n
		}
	}
	for i := range nvml.NVLINK_MAX_LINKS {
		switch state, ret := d.GetNvLinkState(i); {
		case ret != nvml.SUCCESS: // there is no such link
		case state == nvml.FEATURE_ENABLED:
			n.Up++
			if v, ret := d.GetNvLinkVersion(i); ret == nvml.SUCCESS {
				n.Version, n.Rate = nvlinkVersions[v].name, nvlinkVersions[v].rate
			}
		default:
			n.Down++
		}
	}
	return n
}

func (q *asker) link(from, to nvml.Device) Link {
	if from == to {
		return Self
	}
	if q.lib.Extensions().LookupSymbol("nvmlDeviceGetP2PStatus") != nil {
		return Unknown
	}
	for _, k := range []struct {
		caps nvml.GpuP2PCapsIndex
		link Link
	}{{nvml.P2P_CAPS_INDEX_NVLINK, NVLink}, {nvml.P2P_CAPS_INDEX_READ, PCIe}} {
		switch status, ret := from.GetP2PStatus(to, k.caps); {
		case ret != nvml.SUCCESS:
			return Unknown
		case status == nvml.P2P_STATUS_OK:
			return k.link
		}
	}
	return NoPeer
}
