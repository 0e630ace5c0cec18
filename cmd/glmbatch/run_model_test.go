package main

import "testing"

// A step has as many tokens as the device is good at, unless the job says how many.
func TestUsualRows(t *testing.T) {
	m, err := (&runFlags{tp: 1}).openModel() // the demo's
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	for _, c := range []struct {
		device     string
		said, want int
	}{{"cpu", 0, 512}, {"cuda", 0, 2048}, {"cuda", 33, 33}} {
		r := &runFlags{maxBatchTokens: c.said}
		r.device.kind = c.device
		if got := r.modelOptions(m).MaxRows; got != c.want {
			t.Errorf("%s, --max-batch-tokens %d: %d tokens a step, want %d", c.device, c.said, got, c.want)
		}
	}
}
