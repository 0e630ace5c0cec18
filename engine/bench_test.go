package engine_test

import (
	"fmt"
	"testing"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
)

// Steps of the demo model that decode, by ranks and sequences. The phases are
// those of StepInfo.
func BenchmarkDecode(b *testing.B) {
	for _, tp := range []int{1, 8} {
		for _, seqs := range []int{1, 64} {
			b.Run(fmt.Sprintf("tp%d/seqs%d", tp, seqs), func(b *testing.B) {
				m := load(b, tp, 0, glm5.Options{MaxRows: 512, MaxSeqs: seqs, Context: 256, Pages: 256})
				var sum engine.StepInfo
				kind := ""
				e, err := engine.New(m, engine.Options{OnStep: func(s engine.StepInfo) {
					kind = s.Kind
					sum.ScheduleNS += s.ScheduleNS
					sum.UploadNS += s.UploadNS
					sum.DeviceNS += s.DeviceNS
					sum.SampleNS += s.SampleNS
				}})
				if err != nil {
					b.Fatal(err)
				}
				id := int64(0)
				fill := func() {
					for ; e.Stats().Running+e.Stats().Waiting < seqs; id++ {
						prompt := make([]int32, 40)
						for i := range prompt {
							prompt[i] = int32(i+int(id)) % 2000
						}
						if err := e.Add(engine.Request{ID: id, Prompt: prompt, Sampling: engine.Sampling{MaxTokens: 200, IgnoreEOS: true}}); err != nil {
							b.Fatal(err)
						}
					}
				}
				for b.Loop() {
					if e.Stats().Running < seqs {
						b.StopTimer()
						fill()
						for kind = ""; kind != "decode"; {
							if _, err := e.Step(); err != nil {
								b.Fatal(err)
							}
						}
						sum = engine.StepInfo{}
						b.StartTimer()
					}
					if _, err := e.Step(); err != nil {
						b.Fatal(err)
					}
				}
				n := float64(b.N) * 1000
				b.ReportMetric(float64(sum.ScheduleNS)/n, "schedule-µs")
				b.ReportMetric(float64(sum.UploadNS)/n, "upload-µs")
				b.ReportMetric(float64(sum.SampleNS)/n, "sample-µs")
			})
		}
	}
}
