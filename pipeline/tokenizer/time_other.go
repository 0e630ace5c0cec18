//go:build !linux

package tokenizer

import "time"

// threadTime is the time of a clock where a thread's own is not known.
func threadTime() time.Duration { return time.Since(started) }
