package datasets

// Dims are the sizes that a call's cost and shape follow from, field by field those of
// kernels.Dims, which says what they are: the columns of calls in timelines and captures.
type Dims struct {
	M      int32 `parquet:"m" arrow:"m"`
	N      int32 `parquet:"n" arrow:"n"`
	K      int32 `parquet:"k" arrow:"k"`
	Groups int32 `parquet:"groups" arrow:"groups"`
	Heads  int32 `parquet:"heads" arrow:"heads"`
	Rope   int32 `parquet:"rope" arrow:"rope"`
	TopK   int32 `parquet:"top_k" arrow:"top_k"`
	Ranks  int32 `parquet:"ranks" arrow:"ranks"`
	Slots  int64 `parquet:"slots" arrow:"slots"`
	Ctx    int64 `parquet:"ctx" arrow:"ctx"`
}

// Span is a row of a timeline: one kernel call, copy, gap or host phase on one
// lane of one rank. Imported timelines have the same rows as our own.
type Span struct {
	Step int64 `parquet:"step" arrow:"step"`
	Rank int32 `parquet:"rank" arrow:"rank"`
	// "device", "device 1", "host", or the stream of an import
	Lane    string `parquet:"lane,dict" arrow:"lane,dict"`
	Call    int32  `parquet:"call" arrow:"call"`               // place in the step's list; -1: no call of ours
	Layer   int32  `parquet:"layer" arrow:"layer"`             // -1: none
	Kernel  string `parquet:"kernel,dict" arrow:"kernel,dict"` // or the host phase
	Class   string `parquet:"class,dict" arrow:"class,dict"`   // "host" for host phases
	StartNS int64  `parquet:"start_ns" arrow:"start_ns"`       // since the start of the run
	EndNS   int64  `parquet:"end_ns" arrow:"end_ns"`

	Dims // Groups: the experts really touched

	Bytes     int64 `parquet:"bytes" arrow:"bytes"` // least memory traffic of this rank
	WireBytes int64 `parquet:"wire_bytes" arrow:"wire_bytes"`
	FLOPs     int64 `parquet:"flops" arrow:"flops"`

	// Of imports only, but for Evidence; empty or 0 in our own.
	GridX       int32  `parquet:"grid_x" arrow:"grid_x"`
	GridY       int32  `parquet:"grid_y" arrow:"grid_y"`
	GridZ       int32  `parquet:"grid_z" arrow:"grid_z"`
	BlockX      int32  `parquet:"block_x" arrow:"block_x"`
	BlockY      int32  `parquet:"block_y" arrow:"block_y"`
	BlockZ      int32  `parquet:"block_z" arrow:"block_z"`
	Correlation int64  `parquet:"correlation" arrow:"correlation"`
	Graph       int64  `parquet:"graph" arrow:"graph"`                 // the graph node, or 0
	Evidence    string `parquet:"evidence,dict" arrow:"evidence,dict"` // what a host row is; else what decided an import's class
	Operator    string `parquet:"operator,dict" arrow:"operator,dict"` // of the CPU, that launched it
	Module      string `parquet:"module,dict" arrow:"module,dict"`     // around the launch: Model/Layer/Linear
	Frame       string `parquet:"frame,dict" arrow:"frame,dict"`       // the line of Python that it was launched from
}

// Step is a row of the steps table.
type Step struct {
	Step      int64  `parquet:"step" arrow:"step"`
	Kind      string `parquet:"kind,dict" arrow:"kind,dict"` // prefill, decode or mixed
	Sequences int32  `parquet:"sequences" arrow:"sequences"`
	Tokens    int32  `parquet:"tokens" arrow:"tokens"` // rows computed
	Sampled   int32  `parquet:"sampled" arrow:"sampled"`
	Waiting   int32  `parquet:"waiting" arrow:"waiting"` // sequences not admitted yet
	Pages     int32  `parquet:"pages" arrow:"pages"`     // cache pages in use
	Preempted int32  `parquet:"preempted" arrow:"preempted"`
	StartNS   int64  `parquet:"start_ns" arrow:"start_ns"` // since the start of the run
	WallNS    int64  `parquet:"wall_ns" arrow:"wall_ns"`

	// Host phases inside the step; the rest of WallNS is the device's.
	ScheduleNS int64 `parquet:"schedule_ns" arrow:"schedule_ns"`
	UploadNS   int64 `parquet:"upload_ns" arrow:"upload_ns"`
	LaunchNS   int64 `parquet:"launch_ns" arrow:"launch_ns"`
	DeviceNS   int64 `parquet:"device_ns" arrow:"device_ns"`
	SampleNS   int64 `parquet:"sample_ns" arrow:"sample_ns"` // fetching tokens, stop rules
	Recorded   bool  `parquet:"recorded" arrow:"recorded"`   // it was timed call by call

	// The job's GPUs together, as they were a moment before the step ended (they are asked
	// every quarter of a second); null without GPUs, or where they do not tell.
	GPUWatts       *float64 `parquet:"gpu_watts,optional" arrow:"gpu_watts"`
	GPUJoules      *float64 `parquet:"gpu_joules,optional" arrow:"gpu_joules"`       // since the run began
	GPUClock       *int32   `parquet:"gpu_clock_mhz,optional" arrow:"gpu_clock_mhz"` // of the slowest
	GPUMemoryClock *int32   `parquet:"gpu_memory_clock_mhz,optional" arrow:"gpu_memory_clock_mhz"`
	GPUCelsius     *int32   `parquet:"gpu_celsius,optional" arrow:"gpu_celsius"` // of the hottest
	GPUMemory      *int64   `parquet:"gpu_memory_bytes,optional" arrow:"gpu_memory_bytes"`
	// why clocks are lowered, with + between; empty: they are not
	GPUThrottle *string `parquet:"gpu_throttle,optional,dict" arrow:"gpu_throttle"`
}
