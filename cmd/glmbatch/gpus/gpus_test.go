package gpus

import (
	"os"
	"path/filepath"
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
		"version":                       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@host)  Sun Jul 27 07:11:41 UTC 2025\nGCC version:  gcc version 12.2.0\n",
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
