package replay_test

import (
	"runtime"
	"testing"

	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/replay"
)

// A capturer remembers nothing of steps that are over, whoever gets their traces.
func TestAttachForgets(t *testing.T) {
	const steps, each = 200_000, 1 // bytes a step: an entry of a map takes more
	seen := 0
	count := func(kernels.Trace) { seen++ }
	for name, onTrace := range map[string]func(kernels.Trace){"nobody": nil, "somebody": count} {
		for _, selector := range []string{"step=7", "slowest=1"} {
			c := capturerOf(t, selector)
			o := engine.Options{Trace: func(int64, string) bool { return true }, OnTrace: onTrace}
			c.Attach(&o)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for step := range int64(steps) {
				if !o.Trace(step, kernels.Decode) && onTrace != nil {
					t.Fatalf("%s, %s: step %d is not timed", name, selector, step)
				}
				if o.OnTrace != nil {
					o.OnTrace(kernels.Trace{Step: step})
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > steps*each {
				t.Errorf("%s, %s: %d bytes are kept of %d steps", name, selector, grown, steps)
			}
			runtime.KeepAlive(&o)
		}
	}
	if seen != 2*steps {
		t.Errorf("%d traces of %d", seen, 2*steps)
	}
}

func capturerOf(t *testing.T, selector string) *replay.Capturer {
	t.Helper()
	list, err := replay.ParseSelectors(selector)
	if err != nil {
		t.Fatal(err)
	}
	c, err := replay.NewCapturer(nil, replay.CaptureOptions{Dir: t.TempDir(), Selectors: list})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
