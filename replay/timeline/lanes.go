package timeline

import "strings"

// Lanes of our own timelines.
const (
	LaneDevice   = "device"
	LaneShared   = "device (shared)" // ranks share one memory and one set of threads
	LaneHost     = "host"            // the thread that drives the steps
	LaneRead     = "host.read"
	LaneTokenize = "host.tokenize"
	LaneWrite    = "host.write"
)

// Classes of host rows; device rows have the classes of kernels.
const (
	ClassHost   = "host"   // a phase
	ClassStep   = "step"   // the envelope of a step; the kernel column is its kind
	ClassLaunch = "launch" // a call that starts device work
	ClassSync   = "sync"   // the host waits for a device
	ClassRange  = "range"  // an annotation
)

// Kinds of steps.
const (
	KindPrefill = "prefill"
	KindDecode  = "decode"
	KindMixed   = "mixed"
	KindUnknown = "step"
)

// IsHost reports whether a lane is a host's.
func IsHost(lane string) bool {
	return strings.HasPrefix(lane, LaneHost) && (len(lane) == len(LaneHost) || strings.IndexByte(" .:", lane[len(LaneHost)]) >= 0)
}

// explains reports whether the phases of a host lane can be what a device waits
// for: those of the driving thread, and of an import's threads.
func explains(lane string) bool {
	return IsHost(lane) && !strings.HasPrefix(lane, LaneHost+".")
}

// IsComm reports whether a class is communication between ranks.
func IsComm(class string) bool { return class == "comm" || strings.HasPrefix(class, "comm.") }
