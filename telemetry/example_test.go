package telemetry_test

import (
	"fmt"
	"time"

	"glmbatch/telemetry"
)

// What a while was like follows from a reading at each end.
func ExampleBetween() {
	start := time.Unix(0, 0)
	a := telemetry.Reading{At: start, GPU: &telemetry.GPU{Joules: 1000}}
	b := telemetry.Reading{At: start.Add(2 * time.Second), GPU: &telemetry.GPU{Joules: 2400}}
	c := telemetry.Between(a, b)
	fmt.Println(c.Seconds, "s", c.GPU.Joules, "J")
	// Output:
	// 2 s 1400 J
}
