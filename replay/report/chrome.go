package report

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"glmbatch/replay/timeline"
)

// lead is where the first span of a Chrome trace starts, in ns: readers take a
// start of 0 for a time that was not collected.
const lead = 1000

// writeChrome writes the Chrome trace format: times are microseconds with three
// decimals, so exact, relative to the first span. The categories are those of
// torch.profiler, so that its importers read the file.
func writeChrome(w io.Writer, t *tracks) error {
	b := bufio.NewWriterSize(w, 1<<20)
	c := chrome{b: b, tracks: t}
	b.WriteString(`{"schemaVersion":1,"displayTimeUnit":"ns","traceEvents":[` + "\n")
	c.names()
	for i := range t.events {
		c.event(&t.events[i])
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

type chrome struct {
	b      *bufio.Writer
	tracks *tracks
	line   []byte
	any    bool
}

// names writes what processes and lanes are called and where they are shown.
func (c *chrome) names() {
	for i := range c.tracks.lanes {
		l := &c.tracks.lanes[i]
		pid, process := c.tracks.process(l.rank)
		if l.number == 1 {
			c.meta("process_name", pid, 0, "name", strconv.Quote(process))
			c.meta("process_sort_index", pid, 0, "sort_index", strconv.Itoa(int(l.rank)))
		}
		c.meta("thread_name", pid, l.number, "name", string(quoted(nil, l.title())))
		c.meta("thread_sort_index", pid, l.number, "sort_index", strconv.Itoa(int(l.number)))
	}
}

func (c *chrome) meta(what string, pid, tid int32, key, value string) {
	c.begin()
	c.line = append(c.line, `{"ph":"M","name":"`+what+`","pid":`...)
	c.line = strconv.AppendInt(c.line, int64(pid), 10)
	c.line = append(c.line, `,"tid":`...)
	c.line = strconv.AppendInt(c.line, int64(tid), 10)
	c.line = append(c.line, `,"args":{"`+key+`":`+value+`}}`...)
	c.b.Write(c.line)
}

func (c *chrome) begin() {
	c.line = c.line[:0]
	if c.any {
		c.line = append(c.line, ",\n"...)
	}
	c.any = true
}

func (c *chrome) event(e *placed) {
	t := c.tracks
	l := &t.lanes[e.lane]
	pid, _ := t.process(l.rank)
	c.begin()
	c.line = append(c.line, `{"ph":"X","cat":"`+t.category(e)+`","name":`...)
	c.line = quoted(c.line, t.label(e))
	c.line = append(c.line, `,"pid":`...)
	c.line = strconv.AppendInt(c.line, int64(pid), 10)
	c.line = append(c.line, `,"tid":`...)
	c.line = strconv.AppendInt(c.line, int64(l.number), 10)
	c.line = append(c.line, `,"ts":`...)
	c.line = micros(c.line, e.Start-t.start+lead)
	c.line = append(c.line, `,"dur":`...)
	c.line = micros(c.line, e.End-e.Start)
	c.line = append(c.line, `,"args":{`...)
	for i, a := range t.arguments(e) {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		if a.name == "bytes" && t.names.Name(e.Class) == "memcpy.d2d" {
			a.number /= 2 // profilers count what is copied, timelines what is read and written
		}
		c.line = append(c.line, `"`+a.name+`":`...)
		if a.text != "" {
			c.line = quoted(c.line, a.text)
		} else {
			c.line = strconv.AppendInt(c.line, a.number, 10)
		}
	}
	if stream, ok := strings.CutPrefix(l.name, "stream "); ok {
		if n, err := strconv.Atoi(stream); err == nil {
			c.line = append(c.line, `,"device":0,"stream":`...)
			c.line = strconv.AppendInt(c.line, int64(n), 10)
		}
	}
	if e.GridX > 0 {
		c.line = append(c.line, `,"grid":`...)
		c.line = triple(c.line, e.GridX, e.Detail.GridY, e.Detail.GridZ)
		c.line = append(c.line, `,"block":`...)
		c.line = triple(c.line, e.BlockX, e.Detail.BlockY, e.Detail.BlockZ)
	}
	c.line = append(c.line, "}}"...)
	c.b.Write(c.line)
}

func triple(b []byte, x, y, z int32) []byte {
	b = append(b, '[')
	b = strconv.AppendInt(b, int64(x), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(y), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(z), 10)
	return append(b, ']')
}

// category is torch.profiler's name for what a span is.
func (t *tracks) category(e *placed) string {
	class := t.names.Name(e.Class)
	switch {
	case e.Role == timeline.Envelope:
		return "user_annotation"
	case e.Role == timeline.Launch || e.Role == timeline.Call:
		return "cuda_runtime"
	case e.Role == timeline.Profiler:
		return "overhead"
	case e.Role != timeline.Device:
		return "host"
	case strings.HasPrefix(class, "memcpy"):
		return "gpu_memcpy"
	case class == "memset":
		return "gpu_memset"
	}
	return "kernel"
}

// micros writes ns as microseconds with three decimals.
func micros(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	rest := ns % 1000
	return append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// quoted writes a JSON string.
func quoted(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			text, _ := json.Marshal(s)
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
