package record_test

import (
	"fmt"
	"strings"

	"glmbatch/replay/record"
)

// Options say all their faults at once, before any server is asked.
func ExampleOptions_Validate() {
	o := record.Options{URL: "localhost:30000", Steps: -1}
	for line := range strings.Lines(fmt.Sprint(o.Validate())) {
		fmt.Print(line)
	}
	// Output:
	// url "localhost:30000": say it as http://127.0.0.1:30000
	// steps is -1, must be 0 to 10000
}
