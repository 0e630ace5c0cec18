package importer

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"glmbatch/datasets"
)

// Tables of an Nsight Systems export, with the columns that are used.
type (
	nsysString struct {
		ID    int64  `parquet:"id" arrow:"id"`
		Value string `parquet:"value" arrow:"value"`
	}
	nsysKernel struct {
		Start       int64 `parquet:"start" arrow:"start"`
		End         int64 `parquet:"end" arrow:"end"`
		Device      int64 `parquet:"deviceId" arrow:"deviceId"`
		Stream      int64 `parquet:"streamId" arrow:"streamId"`
		Correlation int64 `parquet:"correlationId" arrow:"correlationId"`
		GlobalPID   int64 `parquet:"globalPid" arrow:"globalPid"`
		Demangled   int64 `parquet:"demangledName" arrow:"demangledName"`
		Mangled     int64 `parquet:"mangledName" arrow:"mangledName"`
		Short       int64 `parquet:"shortName" arrow:"shortName"`
		GridX       int64 `parquet:"gridX" arrow:"gridX"`
		GridY       int64 `parquet:"gridY" arrow:"gridY"`
		GridZ       int64 `parquet:"gridZ" arrow:"gridZ"`
		BlockX      int64 `parquet:"blockX" arrow:"blockX"`
		BlockY      int64 `parquet:"blockY" arrow:"blockY"`
		BlockZ      int64 `parquet:"blockZ" arrow:"blockZ"`
		GraphNode   int64 `parquet:"graphNodeId" arrow:"graphNodeId"`
	}
	nsysCopy struct { // MEMCPY and MEMSET
		Start       int64 `parquet:"start" arrow:"start"`
		End         int64 `parquet:"end" arrow:"end"`
		Device      int64 `parquet:"deviceId" arrow:"deviceId"`
		Stream      int64 `parquet:"streamId" arrow:"streamId"`
		Correlation int64 `parquet:"correlationId" arrow:"correlationId"`
		GlobalPID   int64 `parquet:"globalPid" arrow:"globalPid"`
		Bytes       int64 `parquet:"bytes" arrow:"bytes"`
		CopyKind    int64 `parquet:"copyKind" arrow:"copyKind"`
		GraphNode   int64 `parquet:"graphNodeId" arrow:"graphNodeId"`
	}
	nsysGraph struct { // one launch of a whole graph
		Start       int64 `parquet:"start" arrow:"start"`
		End         int64 `parquet:"end" arrow:"end"`
		Device      int64 `parquet:"deviceId" arrow:"deviceId"`
		Stream      int64 `parquet:"streamId" arrow:"streamId"`
		Correlation int64 `parquet:"correlationId" arrow:"correlationId"`
		GlobalPID   int64 `parquet:"globalPid" arrow:"globalPid"`
		Graph       int64 `parquet:"graphId" arrow:"graphId"`
	}
	nsysCall struct { // RUNTIME and OVERHEAD
		Start       int64 `parquet:"start" arrow:"start"`
		End         int64 `parquet:"end" arrow:"end"`
		GlobalTID   int64 `parquet:"globalTid" arrow:"globalTid"`
		Correlation int64 `parquet:"correlationId" arrow:"correlationId"`
		Name        int64 `parquet:"nameId" arrow:"nameId"`
	}
	nsysRange struct { // NVTX
		Start     int64  `parquet:"start" arrow:"start"`
		End       int64  `parquet:"end" arrow:"end"`
		Kind      int64  `parquet:"eventType" arrow:"eventType"`
		Text      string `parquet:"text" arrow:"text"`
		TextID    int64  `parquet:"textId" arrow:"textId"`
		GlobalTID int64  `parquet:"globalTid" arrow:"globalTid"`
	}
	nsysMeta struct {
		Name  string `parquet:"name" arrow:"name"`
		Value string `parquet:"value" arrow:"value"`
	}
	nsysClock struct {
		UTC    int64 `parquet:"utcEpochNs" arrow:"utcEpochNs"`
		System int64 `parquet:"systemClockNs" arrow:"systemClockNs"`
	}
	nsysGPU struct {
		Name string `parquet:"name" arrow:"name"`
	}
	nsysDiagnostic struct {
		Severity int64  `parquet:"severity" arrow:"severity"`
		Text     string `parquet:"text" arrow:"text"`
	}
)

const (
	tableKernel   = "CUPTI_ACTIVITY_KIND_KERNEL"
	tableMemcpy   = "CUPTI_ACTIVITY_KIND_MEMCPY"
	tableMemset   = "CUPTI_ACTIVITY_KIND_MEMSET"
	tableGraph    = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	tableRuntime  = "CUPTI_ACTIVITY_KIND_RUNTIME"
	tableOverhead = "CUPTI_ACTIVITY_KIND_OVERHEAD"
)

// maxStrings bounds the bytes of an export's strings.
const maxStrings = 1 << 30

// Nsys reads Nsight Systems exports (SQLite files, parquetdir or arrowdir
// folders) and hands their rows to emit in batches that are reused.
func Nsys(paths []string, o Options, emit func([]datasets.Span) error) (*Summary, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := newTrace(o)
	t.byDevice, t.oneClock = true, len(paths) == 1
	for i, path := range paths {
		s, err := openSource(path)
		if err == nil {
			err = t.readNsys(s, i)
			s.close()
		}
		if err != nil {
			return nil, err
		}
	}
	return t.finish(emit)
}

// nsysReader reads one export.
type nsysReader struct {
	*source
	t       *trace
	file    int
	strings map[int64]string
	ids     map[int64]uint32 // string -> name
	procs   map[int64]int32  // pid -> process
	offset  int64            // to add for absolute time
}

func (t *trace) readNsys(s *source, file int) error {
	if !s.has(tableKernel) && !s.has(tableRuntime) && !s.has(tableMemcpy) && !s.has(tableGraph) && !s.has("StringIds") {
		return fmt.Errorf("%s: no nsys export: it has none of the tables StringIds, %s, %s", s.path, tableKernel,
			tableRuntime)
	}
	r := &nsysReader{source: s, t: t, file: file, strings: map[int64]string{}, ids: map[int64]uint32{},
		procs: map[int64]int32{}}
	for _, read := range []func() error{r.clock, r.allStrings, r.kernels, r.copies, r.graphs, r.calls, r.ranges,
		r.diagnostics, r.gpu} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// clock finds what to add to the times for absolute ones.
func (r *nsysReader) clock() error {
	normal := false
	err := readTable(r.source, "META_DATA_EXPORT", func(m *nsysMeta) error {
		if strings.HasSuffix(m.Name, "TIME_NORMALIZE") {
			normal = m.Value == "true" || m.Value == "1"
		}
		return nil
	})
	if err != nil {
		return err
	}
	return readTable(r.source, "TARGET_INFO_SESSION_START_TIME", func(c *nsysClock) error {
		if c.UTC > 0 && !outOfRange(c.UTC) && !outOfRange(c.System) {
			r.offset = c.UTC
			if !normal {
				r.offset -= c.System
			}
		}
		return errStop
	})
}

func (r *nsysReader) allStrings() error {
	bytes := 0
	return readTable(r.source, "StringIds", func(s *nsysString) error {
		if bytes += len(s.Value) + 64; bytes > maxStrings {
			return fmt.Errorf("%s: more than %d bytes of strings; export only the CUDA and NVTX tables", r.path,
				maxStrings)
		}
		r.strings[s.ID] = s.Value
		return nil
	})
}

// name returns the name of a string's id.
func (r *nsysReader) name(id int64, clean func(string) string) uint32 {
	n, ok := r.ids[id]
	if !ok {
		s, known := r.strings[id]
		if !known {
			s = fmt.Sprintf("(string %d)", id)
		}
		if clean != nil {
			s = clean(s)
		}
		n = r.intern(s)
		r.ids[id] = n
	}
	return n
}

func (r *nsysReader) intern(s string) uint32 {
	odd := int64(0)
	return r.t.names.intern([]byte(s), func(raw []byte) string {
		return strings.ToValidUTF8(plainText(raw, &odd),
			"�")
	})
}

// proc returns the process of a global id, whose bits 24 to 47 are the pid.
func (r *nsysReader) proc(global int64) (int32, error) {
	pid := global >> 24 & 0xffffff
	p, ok := r.procs[pid]
	if !ok {
		if len(r.procs) >= 1<<15 {
			return 0, fmt.Errorf("%s: more than %d processes", r.path, 1<<15)
		}
		p = int32(len(r.t.procs))
		r.t.procs = append(r.t.procs, proc{file: r.path, number: r.file, rank: -1, pid: pid,
			parts: counters{truncatedAt: -1}})
		r.procs[pid] = p
	}
	return p, nil
}

// add keeps a record with raw times. A raw zero means that the time was not
// collected, so it stays zero.
func (r *nsysReader) add(global int64, rec record) error {
	p, err := r.proc(global)
	if err != nil {
		return err
	}
	if outOfRange(rec.start) || outOfRange(rec.end) {
		r.t.procs[p].parts.badNumber++
		return nil
	}
	if rec.start != 0 {
		rec.start += r.offset
		if rec.end != 0 { // else it ends before it starts, and the gate sees it
			rec.end += r.offset
		}
	}
	rec.proc, rec.rank, rec.step, rec.layer = p, -1, -1, -1
	return r.t.add(rec)
}

func (r *nsysReader) deviceLane(device, stream int64) uint32 {
	return r.t.lane(lane{device: int32(min(max(device, 0), math.MaxInt32)), id: stream})
}

func (r *nsysReader) kernels() error {
	return readTable(r.source, tableKernel, func(k *nsysKernel) error {
		id := k.Demangled
		for _, other := range []int64{k.Mangled, k.Short} {
			if r.strings[id] == "" {
				id = other
			}
		}
		return r.add(k.GlobalPID, record{
			start: k.Start, end: k.End, correlation: k.Correlation, node: k.GraphNode, kind: isKernel,
			name: r.name(id, nil), lane: r.deviceLane(k.Device, k.Stream),
			shape: r.t.shape(shape{dims(k.GridX, k.GridY, k.GridZ), dims(k.BlockX, k.BlockY, k.BlockZ)}),
		})
	})
}

// dims are sizes of a grid; zeros where one is none.
func dims(x, y, z int64) [3]int32 {
	for _, v := range []int64{x, y, z} {
		if v < 0 || v > math.MaxInt32 {
			return [3]int32{}
		}
	}
	return [3]int32{int32(x), int32(y), int32(z)}
}

// copyKinds name the values of ENUM_CUDA_MEMCPY_OPER as torch.profiler does.
var copyKinds = map[int64]string{1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "Memcpy HtoA", 4: "Memcpy AtoH",
	5: "Memcpy AtoA", 6: "Memcpy AtoD",
	7: "Memcpy DtoA", 8: "Memcpy DtoD", 9: "Memcpy HtoH", 10: "Memcpy PtoP", 11: "Memcpy UVM HtoD",
	12: "Memcpy UVM DtoH", 13: "Memcpy UVM DtoD"}

func (r *nsysReader) copies() error {
	for _, table := range []string{tableMemcpy, tableMemset} {
		err := readTable(r.source, table, func(c *nsysCopy) error {
			k, name := isMemset, "Memset"
			if table == tableMemcpy {
				k = isMemcpy
				if name = copyKinds[c.CopyKind]; name == "" {
					name = "Memcpy"
				}
			}
			return r.add(c.GlobalPID, record{
				start: c.Start, end: c.End, correlation: c.Correlation, node: c.GraphNode, kind: k, bytes: max(0,
					c.Bytes),
				name: r.intern(name), lane: r.deviceLane(c.Device, c.Stream),
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// graphs reads launches of whole graphs, which nsys records by default instead
// of the kernels inside. Such a row has no class and makes every share wrong.
func (r *nsysReader) graphs() error {
	n := int64(0)
	err := readTable(r.source, tableGraph, func(g *nsysGraph) error {
		n++
		return r.add(g.GlobalPID, record{
			start: g.Start, end: g.End, correlation: g.Correlation, kind: isKernel,
			name: r.intern(opaqueGraph), lane: r.deviceLane(g.Device, g.Stream),
		})
	})
	if n > 0 {
		r.t.opaque += n
		r.t.find("graph_mode", severityUnreliable, -1, n,
			"%d launches of CUDA graphs were recorded without the kernels inside; re-record with "+
				"--cuda-graph-trace=node", n)
	}
	return err
}

const opaqueGraph = "CUDA graph (opaque)"

// versionSuffix is what CUPTI adds to names of API calls.
var versionSuffix = regexp.MustCompile(`(_v\d+)?(_pt[ds][sz])?$`)

func callName(s string) string { return versionSuffix.ReplaceAllString(s, "") }

func (r *nsysReader) calls() error {
	err := readTable(r.source, tableRuntime, func(c *nsysCall) error {
		return r.add(c.GlobalTID, record{
			start: c.Start, end: c.End, correlation: c.Correlation, kind: isAPI,
			name: r.name(c.Name, callName), lane: r.t.lane(lane{device: -1, id: c.GlobalTID & 0xffffff}),
		})
	})
	if err != nil {
		return err
	}
	for _, table := range []string{tableOverhead, "PROFILER_OVERHEAD"} {
		err := readTable(r.source, table, func(c *nsysCall) error {
			name := r.intern("profiler overhead")
			if s := r.strings[c.Name]; s != "" {
				name = r.name(c.Name, callName)
			}
			return r.add(c.GlobalTID, record{start: c.Start, end: c.End, kind: isOverhead, name: name,
				lane: r.t.lane(lane{device: -1, id: -1})})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ranges reads NVTX ranges that mark steps and layers.
func (r *nsysReader) ranges() error {
	return readTable(r.source, "NVTX_EVENTS", func(e *nsysRange) error {
		if e.Kind != 59 && e.Kind != 60 || e.End <= e.Start || e.Start == 0 || outOfRange(e.Start) ||
			outOfRange(e.End) {
			return nil
		}
		text := e.Text
		if text == "" {
			text = r.strings[e.TextID]
		}
		if readMark(text).family == noMark {
			return nil
		}
		p, err := r.proc(e.GlobalTID)
		if err != nil {
			return err
		}
		r.t.addWindow(p, r.intern(text), false, e.Start+r.offset, e.End+r.offset, e.GlobalTID&0xffffff, -1)
		return nil
	})
}

// maxDiagnostics bounds the messages of nsys that become findings.
const maxDiagnostics = 8

// diagnostics passes on the warnings and errors of nsys.
func (r *nsysReader) diagnostics() error {
	n := 0
	return readTable(r.source, "DIAGNOSTIC_EVENT", func(d *nsysDiagnostic) error {
		if d.Severity < 2 { // 1: information
			return nil
		}
		if n++; n > maxDiagnostics {
			return errStop
		}
		severity := severityNote
		if text := strings.ToLower(d.Text); strings.Contains(text, "drop") || strings.Contains(text, "lost") ||
			strings.Contains(text, "incomplete") {
			severity = severityUnreliable
		}
		line := strings.Join(strings.Fields(strings.ToValidUTF8(d.Text[:min(len(d.Text), 300)], "")), " ")
		r.t.find("nsys", severity, -1, 0, "nsys says: %s", line)
		return nil
	})
}

// gpu reads the first GPU's name.
func (r *nsysReader) gpu() error {
	return readTable(r.source, "TARGET_INFO_GPU", func(g *nsysGPU) error {
		if r.t.device == "" {
			r.t.device = g.Name[:min(len(g.Name), 200)]
		}
		return errStop
	})
}
