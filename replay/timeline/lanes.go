package timeline

import (
	"regexp"
	"strconv"
	"strings"

	"glmbatch/kernels"
)

// Lanes of our own timelines.
const (
	LaneDevice   = "device"
	LaneShared   = "device (shared)" // ranks share one memory and one set of threads
	LaneHost     = "host"            // the thread that drives the steps
	LaneLaunch   = "host.launch"     // a rank's thread, while it launches a step
	LaneCopies   = "host.copies"     // between the host and a rank's device
	LaneRead     = "host.read"
	LaneTokenize = "host.tokenize"
	LaneWrite    = "host.write"
)

// laneBeside is the lane of calls that run beside those of LaneDevice.
func laneBeside(n int8) string { return LaneDevice + " " + strconv.Itoa(int(n)) }

// ClassHost is the class of all host rows.
const ClassHost = "host"

// What a host row is, in its Evidence column; a phase of ours has none.
const (
	RoleStep     = "step"     // the envelope of a step
	RoleLaunch   = "launch"   // a call that starts device work
	RoleSync     = "sync"     // the host waits for a device
	RoleOverhead = "overhead" // time that a profiler took
	RoleAPI      = "api"      // any other call of a driver
)

// KindUnknown is the kind of a step of which nobody says whether it is prefill, decode
// or mixed.
const KindUnknown = "step"

var contexts = regexp.MustCompile(`context_(\d+).*generation_(\d+)`)

// KindOf reads the kind of a step from the name of its envelope: our own kinds,
// or an engine's annotation such as "decode_step.3", "step[DECODE bs=32]" or
// "execute_context_1(512)_generation_7(7)".
func KindOf(name string) string {
	name = strings.ToLower(name)
	if m := contexts.FindStringSubmatch(name); m != nil {
		switch prompts, tokens := strings.Trim(m[1], "0"), strings.Trim(m[2], "0"); {
		case prompts != "" && tokens != "":
			return kernels.Mixed
		case prompts != "":
			return kernels.Prefill
		case tokens != "":
			return kernels.Decode
		}
		return KindUnknown
	}
	for _, k := range kernels.StepKinds {
		if strings.Contains(name, k) {
			return k
		}
	}
	if strings.Contains(name, "extend") {
		return kernels.Prefill
	}
	return KindUnknown
}

// IsHost reports whether a lane is a host's.
func IsHost(lane string) bool {
	return strings.HasPrefix(lane, LaneHost) && (len(lane) == len(LaneHost) ||
		strings.IndexByte(" .:", lane[len(LaneHost)]) >= 0)
}

// explains reports whether the phases of a host lane can be what a device waits
// for: those of the driving thread, and of an import's threads.
func explains(lane string) bool {
	return IsHost(lane) && !strings.HasPrefix(lane, LaneHost+".")
}

// IsComm reports whether a class is communication between ranks.
func IsComm(class string) bool { return class == "comm" || strings.HasPrefix(class, "comm.") }
