//go:build cuda

package cuda

import (
	"fmt"

	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/nccl"

	"gorgonia.org/cu"
)

// Visible lists the GPUs that Open places ranks on, in their order.
func Visible() ([]GPU, error) {
	if err := driver.Status(); err != nil {
		return nil, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, fmt.Errorf("count the GPUs: %w", err)
	}
	all := make([]GPU, n)
	for i := range all {
		dev := cu.Device(i)
		var at [3]int
		for j, a := range []cu.DeviceAttribute{cu.PciDomainID, cu.PciBusID, cu.PciDeviceID} {
			if at[j], err = dev.Attribute(a); err != nil {
				return nil, fmt.Errorf("where GPU %d is: %w", i, err)
			}
		}
		all[i].PCI = fmt.Sprintf("%04x:%02x:%02x.0", at[0], at[1], at[2])
		for j := range all {
			ok := 1
			if i != j {
				if ok, err = dev.CanAccessPeer(cu.Device(j)); err != nil {
					return nil, fmt.Errorf("whether GPU %d reaches GPU %d: %w", i, j, err)
				}
			}
			all[i].Reaches = append(all[i].Reaches, ok != 0)
		}
	}
	return all, nil
}

// NCCLVersion is that of the library at path, as for Options.NCCL.
func NCCLVersion(path string) (string, error) {
	l, err := nccl.Open(path)
	if err != nil {
		return "", err
	}
	return l.Version, nil
}
