package importer

import (
	"cmp"
	"slices"
	"strings"
)

// site is where a kernel was launched from: the innermost operator, the modules
// around it, and the innermost line of Python; mark is the layer's annotation. Numbers
// of names; 0: none.
type site struct{ operator, module, frame, mark uint32 }

// call is an operator, a module or a Python frame, on one thread.
type call struct {
	start, end int64
	name       uint32
	kind       callKind
}

type callKind uint8

const (
	isOperator callKind = iota
	isModule
	isFrame
	isBuiltin // has no line
)

// maxCalls bounds the calls of a file.
const maxCalls = 1 << 24

// callers are the calls of the file that is read, by process and thread. What
// launches fall into is known when all are read; then they are forgotten.
type callers struct {
	of   map[callThread]*[]call
	last callThread // and its calls: most calls are of the thread of the one before
	list *[]call
	n    int
	lost int64
}

// callThread is a thread of a process, as the file writes that.
type callThread struct {
	pid string
	tid int64
}

// add keeps a call.
func (c *callers) add(pid []byte, tid int64, v call) {
	if c.n >= maxCalls {
		c.lost++
		return
	}
	if c.list == nil || c.last.tid != tid || c.last.pid != string(pid) {
		c.last = callThread{string(pid), tid}
		if c.of == nil {
			c.of = map[callThread]*[]call{}
		}
		if c.list = c.of[c.last]; c.list == nil {
			c.list = new([]call)
			c.of[c.last] = c.list
		}
	}
	*c.list = append(*c.list, v)
	c.n++
}

const modulePrefix = "nn.Module: "

// kindOfCall says what an event of Python is.
func kindOfCall(name string) callKind {
	switch {
	case strings.HasPrefix(name, modulePrefix):
		return isModule
	case strings.HasPrefix(name, "<"): // <built-in method mm of type object at 0x…>
		return isBuiltin
	}
	return isFrame
}

// addCall keeps an operator or a call of Python.
func (t *trace) addCall(e *event) {
	if e.badTime || !e.hasTS || outOfRange(e.ts) || outOfRange(e.dur) || e.dur < 0 {
		return
	}
	odd := int64(0)
	id := t.names.intern(e.name, func(raw []byte) string { return text(raw, &odd) })
	kind := isOperator
	if e.kind == isPython {
		if kind = kindOfCall(t.names.list[id].text); kind == isBuiltin {
			return
		}
	}
	t.callers.add(e.pidText, e.tid, call{e.ts, e.ts + e.dur, id, kind})
}

// findSites gives the launches from first on their sites, and forgets the calls.
func (t *trace) findSites(first int) {
	c := t.callers
	t.callers = callers{}
	if c.lost > 0 {
		t.find("many_calls", severityNote, -1, c.lost,
			"more than %d operators and Python frames: the last %d are not in costs by operator, module and frame",
			maxCalls, c.lost)
	}
	if c.n == 0 {
		return
	}
	t.hasSites = true
	launches := map[callThread][]*record{}
	for k := first; k < t.n; k++ {
		if r := t.at(int32(k)); r.kind == isAPI && r.correlation > 0 {
			thread := callThread{t.pids.list[r.proc].text, t.lanes[r.lane].id}
			launches[thread] = append(launches[thread], r)
		}
	}
	paths := modulePaths{t: t, of: map[[2]uint32]uint32{}}
	for thread, list := range launches {
		if calls := c.of[thread]; calls != nil {
			t.nest(*calls, list, &paths)
		}
	}
}

// nest gives launches of one thread the site of the innermost calls around their
// begin.
func (t *trace) nest(calls []call, launches []*record, paths *modulePaths) {
	byStart := func(a, b call) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) }
	if !slices.IsSortedFunc(calls, byStart) {
		slices.SortStableFunc(calls, byStart)
	}
	slices.SortStableFunc(launches, func(a, b *record) int { return cmp.Compare(a.start, b.start) })
	type open struct {
		end int64
		at  site
	}
	var stack []open
	until := func(at int64) {
		for len(stack) > 0 && stack[len(stack)-1].end <= at {
			stack = stack[:len(stack)-1]
		}
	}
	next := 0
	for _, r := range launches {
		for ; next < len(calls) && calls[next].start <= r.start; next++ {
			v := &calls[next]
			until(v.start)
			var at site
			if n := len(stack); n > 0 {
				at = stack[n-1].at
			}
			switch v.kind {
			case isOperator:
				at.operator = v.name
			case isModule:
				at.module = paths.inside(at.module, v.name)
			default:
				at.frame = v.name
			}
			stack = append(stack, open{v.end, at})
		}
		if until(r.start); len(stack) > 0 {
			r.site = t.site(stack[len(stack)-1].at)
		}
	}
}

// site returns the number of a site.
func (t *trace) site(s site) uint32 {
	i, ok := t.siteOf[s]
	if !ok && len(t.sites) < maxTable {
		i = uint32(len(t.sites))
		t.sites = append(t.sites, s)
		t.siteOf[s] = i
	}
	return i // a full table: site 0, unknown
}

// modulePaths are the names of modules inside others, without the numbers of their
// instances: Model/DecoderLayer/Attention/Linear. What is the same in each layer is
// one module.
type modulePaths struct {
	t  *trace
	of map[[2]uint32]uint32
}

// longestPath bounds a path of modules; those further in count for the last in it.
const longestPath = 1 << 10

func (p *modulePaths) inside(outer, module uint32) uint32 {
	k := [2]uint32{outer, module}
	id, ok := p.of[k]
	if !ok {
		name := strings.TrimPrefix(p.t.names.list[module].text, modulePrefix)
		if i := strings.LastIndexByte(name, '_'); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
			name = name[:i]
		}
		if outer != 0 {
			name = p.t.names.list[outer].text + "/" + name
		}
		if id = outer; outer == 0 || len(name) <= longestPath {
			id = p.t.names.intern([]byte(name), func([]byte) string { return name })
		}
		p.of[k] = id
	}
	return id
}
