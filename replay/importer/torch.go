package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strconv"

	"glmbatch/datasets"
)

// Torch reads torch.profiler traces, one file a rank, and hands their rows to
// emit in batches that are reused.
func Torch(files []string, o Options, emit func([]datasets.Span) error) (*Summary, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := newTrace(o)
	for i, file := range files {
		s, closer, err := openTrace(file)
		if err != nil {
			return nil, err
		}
		err = t.readTorch(s, file, i)
		closer.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return t.finish(emit)
}

// torchHead is what stands beside the events.
type torchHead struct {
	base     int64
	rank     int32
	hasRank  bool
	isObject bool
}

// readTorch reads one file as process i.
func (t *trace) readTorch(s *stream, file string, i int) error {
	p := int32(len(t.procs))
	t.procs = append(t.procs, proc{file: file, number: i, rank: -1, coarse: true, parts: counters{truncatedAt: -1}})
	t.pids = pids{}
	firstChunk, firstWindow := t.n, len(t.windows)
	head := torchHead{rank: -1}
	if err := t.readTop(s, p, &head); err != nil {
		return err
	}
	t.findSites(firstChunk)
	pr := &t.procs[p]
	if s.fault != nil {
		pr.parts.truncatedAt, pr.parts.truncation = s.offset(), s.fault.Error()
	}
	pr.rank = rankOf(file, head, t.options, i)
	if head.base != 0 {
		pr.epoch = head.base
		for k := firstChunk; k < t.n; k++ {
			r := t.at(int32(k))
			if r.start == 0 { // clamped by the writer, or not collected
				continue
			}
			r.start, r.end = r.start+head.base, r.end+head.base
		}
		for k := firstWindow; k < len(t.windows); k++ {
			w := &t.windows[k]
			w.start, w.end = w.start+head.base, w.end+head.base
		}
	}
	t.settle(&t.pids, p, firstChunk, firstWindow)
	return nil
}

// readTop reads the outermost value: an object with the events among its
// values, or the bare list of events.
func (t *trace) readTop(s *stream, p int32, head *torchHead) error {
	for s.end < 512 && s.more() {
	}
	known := kindOfFile(s.text())
	if known != "" && s.space() != '{' && s.space() != '[' {
		return fmt.Errorf("no torch.profiler trace: it is %s", known)
	}
	switch s.space() {
	case '[':
		return t.readEvents(s, p, true)
	case '{':
		head.isObject = true
	case 0:
		if s.fault != nil {
			return fmt.Errorf("no text: %w", s.fault)
		}
		return errors.New("the file is empty")
	default:
		return errors.New("no torch.profiler trace: JSON with traceEvents was expected")
	}
	s.pos++
	events := false
	for {
		switch s.space() {
		case 0, '}':
			if !events {
				return errors.New("no torch.profiler trace: it has no traceEvents")
			}
			if s.space() == 0 && s.fault == nil {
				s.fault = io.ErrUnexpectedEOF
			}
			return nil
		case ',':
			s.pos++
			continue
		}
		key, o := s.atom(func(c *cursor) ([]byte, outcome) { return c.str(true) })
		if o != whole {
			return endOfTop(s, events, o)
		}
		name := string(key[:min(len(key), 64)])
		if s.space() != ':' {
			return endOfTop(s, events, bad)
		}
		s.pos++
		s.space()
		switch name {
		case "traceEvents":
			if s.space() != '[' {
				return endOfTop(s, events, bad)
			}
			events = true
			if err := t.readEvents(s, p, false); err != nil || s.fault != nil {
				return err
			}
		case "baseTimeNanoseconds":
			v, o := s.atom((*cursor).value)
			if o != whole {
				return endOfTop(s, events, o)
			}
			if base, ok := integer(unquote(v)); ok && base > 0 && !outOfRange(base) {
				head.base = base
			}
		case "deviceProperties":
			v, o := s.atom((*cursor).value)
			if o != whole {
				return endOfTop(s, events, o)
			}
			if t.device == "" {
				t.device = deviceOf(v)
			}
		case "distributedInfo":
			v, o := s.atom((*cursor).value)
			if o != whole {
				return endOfTop(s, events, o)
			}
			var info struct {
				Rank  *int32 `json:"rank"`
				World int32  `json:"world_size"`
			}
			if json.Unmarshal(v, &info) == nil && info.Rank != nil && *info.Rank >= 0 {
				head.rank, head.hasRank = *info.Rank, true
				t.procs[p].world = info.World
			}
		default:
			if !s.skip() {
				return endOfTop(s, events, short)
			}
		}
	}
}

// deviceOf returns the name of a trace's first device. ROCm leaves it empty, but some
// devices are told by their properties.
func deviceOf(properties []byte) string {
	var list []struct {
		Name   string `json:"name"`
		Memory int64  `json:"totalGlobalMem"`
		Major  int    `json:"computeMajor"`
		Minor  int    `json:"computeMinor"`
		Warp   int    `json:"warpSize"`
		Units  int    `json:"numSms"`
	}
	if json.Unmarshal(properties, &list) != nil || len(list) == 0 {
		return ""
	}
	d := list[0]
	if d.Name != "" || d.Warp != 64 {
		return d.Name[:min(len(d.Name), 200)]
	}
	for _, known := range []struct {
		major, minor, units int
		above               int64 // GiB of memory
		name                string
	}{
		{9, 4, 304, 200, "AMD Instinct MI325X"}, {9, 4, 304, 150, "AMD Instinct MI300X"}, {9, 0, 110, 0,
			"AMD Instinct MI250X"}, {9, 0, 104, 0, "AMD Instinct MI250"},
	} {
		if d.Major == known.major && d.Minor == known.minor && d.Units == known.units && d.Memory > known.above<<30 {
			return known.name
		}
	}
	return ""
}

// endOfTop is the end of a file whose outermost object is broken: an error
// where no events were read, otherwise a truncation.
func endOfTop(s *stream, events bool, o outcome) error {
	if !events {
		return fmt.Errorf("no torch.profiler trace: not JSON at byte %d", s.offset())
	}
	if s.fault == nil {
		s.fault = io.ErrUnexpectedEOF
		if o == bad {
			s.fault = errors.New("not JSON behind the events")
		}
	}
	return nil
}

// atom scans a value that must fit into the window and moves behind it.
func (s *stream) atom(scan func(*cursor) ([]byte, outcome)) ([]byte, outcome) {
	for {
		c := cursor{b: s.text()}
		v, o := scan(&c)
		if o == short && s.more() {
			continue
		}
		if o == whole {
			s.pos += c.i
		}
		return v, o
	}
}

// maxLost bounds the events that reach to the end of the window: each costs a
// scan of all of it.
const maxLost = 64

// readEvents reads the list of events that begins at the stream. A bare list may
// lack its end, as the format allows.
func (t *trace) readEvents(s *stream, p int32, bare bool) error {
	s.pos++
	var e event
	lost := 0
	for {
		switch c := s.space(); c {
		case 0:
			if s.fault == nil && !bare {
				s.fault = io.ErrUnexpectedEOF
			}
			return nil
		case ']':
			s.pos++
			return nil
		case ',':
			s.pos++
			continue
		}
		c := cursor{b: s.text()}
		o, object := whole, c.b[0] == '{'
		if object {
			o = readEvent(&c, &e)
		} else {
			_, o = c.value()
		}
		if o == short && s.more() {
			continue
		}
		if o == whole && !object {
			parts := &t.procs[p].parts
			note(&parts.quarantined, &parts.firstQuarantined, s.offset())
			s.pos += c.i
			continue
		}
		if o == whole {
			t.procs[p].parts.commas += c.commas
			if err := t.keep(p, &e, s.offset()); err != nil {
				return err
			}
			s.pos += c.i
			continue
		}
		if o == short {
			if lost++; lost > maxLost {
				return fmt.Errorf("%d events have no end before byte %d: this is no trace", lost, s.offset())
			}
		}
		done, err := t.recover(s, p, &e)
		if err != nil || done {
			return err
		}
	}
}

// recover reads the broken event at the stream leniently, bounded by the start
// of the next one, and moves there. done: there is no next event.
func (t *trace) recover(s *stream, p int32, e *event) (done bool, err error) {
	parts := &t.procs[p].parts
	at := s.offset()
	start, ends := nextEvent(s.text()[1:])
	for start < 0 && s.more() {
		start, ends = nextEvent(s.text()[1:])
	}
	last := start < 0
	body := s.text()
	if !last {
		start, ends = start+1, ends+1
		body = body[:ends]
	} else if k := endOfList(body); k > 0 {
		body = body[:k]
	}
	c := cursor{b: body, lenient: true}
	if len(body) > 0 && body[0] == '{' && readEvent(&c, e) == whole {
		note(&parts.recovered, &parts.firstRecovered, at)
		if err := t.keep(p, e, at); err != nil {
			return true, err
		}
	} else if !last || !s.eof {
		note(&parts.quarantined, &parts.firstQuarantined, at)
	}
	if !last {
		s.pos += start
		return false, nil
	}
	if len(body) < len(s.text()) { // the list's end was found
		s.pos += len(body)
		if s.space() == ',' {
			s.pos++
		}
		if s.space() == ']' {
			s.pos++
			return true, nil
		}
	}
	if s.eof {
		if s.fault == nil {
			s.fault = io.ErrUnexpectedEOF
		}
		return true, nil
	}
	// The window is full of one thing: give it up and go on behind it.
	s.pos = s.end
	if s.space() == 0 && s.fault == nil {
		s.fault = io.ErrUnexpectedEOF
	}
	for {
		start, _ := nextEvent(s.text())
		if start >= 0 {
			s.pos += start
			return false, nil
		}
		s.pos = max(s.pos, s.end-4096)
		if !s.more() {
			return true, nil
		}
	}
}

// endOfList returns the place behind the last event of a list that ends in b: a
// brace, the list's bracket, and the end of the outermost object or its next
// key. 0: there is none.
func endOfList(b []byte) int {
	for k := len(b); ; {
		if k = bytes.LastIndexByte(b[:k], ']'); k < 0 {
			return 0
		}
		before := bytes.TrimRight(b[:k], " \r\n\t,")
		after := bytes.TrimLeft(b[k+1:], " \r\n\t")
		if len(before) > 0 && before[len(before)-1] == '}' && (len(after) == 0 || after[0] == '}' || after[0] == ',') {
			return len(before)
		}
	}
}

// note counts and remembers the place of the first.
func note(n, first *int64, at int64) {
	if *n == 0 {
		*first = at
	}
	*n++
}

// keep turns an event into a record or a window.
func (t *trace) keep(p int32, e *event, at int64) error {
	if e.kind == isNothing || e.kind == isOp || e.kind == isPython {
		if e.phase == 'X' {
			t.procs[p].parts.other++
			if string(e.pidText) == `"CUDA functions"` {
				t.procs[p].parts.legacy++
			}
		}
		if e.kind != isNothing && e.phase == 'X' {
			t.addCall(e)
		}
		return nil
	}
	local, err := t.pids.number(e.pidText)
	if err != nil {
		return err
	}
	who := &t.pids.list[local]
	if e.kind == isMeta {
		if string(e.name) == "process_name" {
			who.named(e.args.name)
		} else if who.exported {
			who.threadNamed(e.tid, e.args.name)
		}
		return nil
	}
	parts := &t.procs[p].parts
	if e.badTime || !e.hasTS || outOfRange(e.ts) || outOfRange(e.dur) {
		note(&parts.badNumber, &parts.firstQuarantined, at)
		return nil
	}
	odd := parts.odd
	given, isGiven := t.givenStep(who, e)
	id := uint32(0)
	if isGiven && e.kind == isKernel && len(e.args.class) > 0 {
		id = t.names.internClass(e.name, e.args.class, &parts.odd)
	} else {
		id = t.names.intern(e.name, func(raw []byte) string { return text(raw, &parts.odd) })
	}
	if parts.odd > odd && odd == 0 && parts.recovered == 0 {
		parts.firstRecovered = at
	}
	if e.kind == isHostMark || e.kind == isGPUMark {
		t.addWindow(local, id, e.kind == isGPUMark, e.ts, e.ts+e.dur, e.tid, given)
		return nil
	}
	if e.fraction {
		t.procs[p].coarse = false
	}
	r := record{
		start: e.ts, end: e.ts + e.dur, correlation: e.args.correlation, node: e.args.node, bytes: e.args.bytes,
		name: id, step: given, layer: -1, proc: local, rank: -1, kind: e.kind,
	}
	if isGiven {
		r.layer = int16(min(max(e.args.layer, -1), math.MaxInt16))
	}
	if e.kind.onDevice() {
		who.work++
		device, stream := e.args.device, e.args.stream
		if device < 0 {
			device = e.pid
		}
		if stream < 0 {
			stream = e.tid
		}
		r.lane = t.lane(lane{device: int32(min(max(device, 0), math.MaxInt32)), id: stream})
		r.shape = t.shape(e.args.shape)
	} else {
		if e.kind == isAPI {
			who.calls++
		}
		if tid, ok := who.threads[e.tid]; ok {
			e.tid = tid
		}
		if e.kind == isOverhead {
			e.tid = -1
		}
		r.lane = t.lane(lane{device: -1, id: e.tid})
	}
	return t.add(r)
}

// outOfRange reports times that are further than a century from zero.
func outOfRange(ns int64) bool { return ns > 1<<61 || ns < -1<<61 }

// ranksInName find the rank in the file names of torch, vLLM and SGLang, the
// surest first.
var ranksInName = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(?:^|[^a-z])rank[-_.]?(\d{1,6})`),
	regexp.MustCompile(`(?i)(?:^|[^a-z])tp[-_.]?(\d{1,6})`),
}

// rankOf decides the rank of the i-th file.
func rankOf(file string, head torchHead, o Options, i int) int32 {
	if o.SetRank {
		return o.Rank + int32(i)
	}
	if head.hasRank {
		return head.rank
	}
	for _, re := range ranksInName {
		if m := re.FindStringSubmatch(filepath.Base(file)); m != nil {
			if v, err := strconv.ParseInt(m[1], 10, 32); err == nil {
				return int32(v)
			}
		}
	}
	return int32(i)
}
