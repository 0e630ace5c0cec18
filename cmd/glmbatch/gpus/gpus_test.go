package gpus

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestFromProc(t *testing.T) {
	dir := t.TempDir()
	var r Report
	fromProc(&r, dir)
	if r.Driver != "" || r.GPUs != nil {
		t.Errorf("of nothing: %+v", r)
	}
	for name, text := range map[string]string{
		"version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  " +
			"Release Build  (root@host)  Sun Jul 27 07:11:41 UTC 2025\nGCC version:  gcc version 12.2.0\n",
		"gpus/0000:18:00.0/information": "Model: \t\t NVIDIA H200\nIRQ:   \t\t 123\n",
		"gpus/0000:2a:00.0/information": "Model: \t\t NVIDIA H200\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fromProc(&r, dir)
	if r.Driver != "580.65.06" || len(r.GPUs) != 2 || r.GPUs[1].Name != "NVIDIA H200" {
		t.Errorf("%+v", r)
	}
}

func TestSee(t *testing.T) {
	all := Report{GPUs: []GPU{
		{PCI: "0000:18:00.0", Links: []Link{Self, NVLink, PCIe}},
		{PCI: "0000:2a:00.0", Links: []Link{NVLink, Self, NoPeer}},
		{PCI: "0000:3a:00.0", Links: []Link{PCIe, NoPeer, Self}}}}
	r := all
	if r.See([]string{"0000:18:00.0", "0000:ff:00.0"}); len(r.GPUs) != 3 || r.Hidden != 0 {
		t.Errorf("with an unknown place: %+v", r)
	}
	r.See([]string{"0000:3a:00.0", "0000:18:00.0"})
	want := []GPU{{PCI: "0000:3a:00.0", Links: []Link{Self, PCIe}}, {PCI: "0000:18:00.0", Links: []Link{PCIe, Self}}}
	if !reflect.DeepEqual(r.GPUs, want) || r.Hidden != 1 {
		t.Errorf("%+v, want %+v", r, want)
	}
}
