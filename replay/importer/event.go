package importer

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// event is what the importer needs of one torch.profiler event. Slices point
// into the reader's window.
type event struct {
	phase    byte
	kind     kind
	name     []byte
	ts, dur  int64 // ns, relative to the file's base
	hasTS    bool
	fraction bool // ts has a decimal point
	badTime  bool // ts or dur is no finite number
	pid, tid int64
	pidText  []byte // as in the file
	args     eventArgs
}

type eventArgs struct {
	device, stream, correlation int64 // -1: absent
	node, bytes                 int64
	shape                       shape
	name, class                 []byte // of processes and threads; of exports of ours
	step, layer                 int64  // of exports of ours; noStep: absent
}

// noStep stands for a step that is not said.
const noStep = math.MinInt64

// kindOf maps an event's category. Kineto wrote capital letters until 2021.
func kindOf(cat []byte) kind {
	switch string(cat) {
	case "kernel", "Kernel":
		return isKernel
	case "gpu_memcpy", "Memcpy":
		return isMemcpy
	case "gpu_memset", "Memset":
		return isMemset
	case "cuda_runtime", "cuda_driver", "Runtime", "Driver", "xpu_runtime", "xpu_driver",
		"privateuse1_runtime", "privateuse1_driver", "mtia_runtime":
		return isAPI
	case "cpu_op", "Operator":
		return isOp
	case "python_function":
		return isPython
	case "overhead":
		return isOverhead
	case "user_annotation":
		return isHostMark
	case "gpu_user_annotation":
		return isGPUMark
	}
	return isNothing
}

// readEvent scans the event that begins at the cursor. Events that the importer
// has no use for come back with kind isNothing.
func readEvent(c *cursor, e *event) outcome {
	*e = event{args: eventArgs{device: -1, stream: -1, correlation: -1, step: noStep, layer: -1}}
	var args []byte
	seenCat := false
	o := c.fields(func(key []byte) (outcome, bool) {
		switch string(key) {
		case "ph":
			text, o := c.value()
			if len(text) >= 3 {
				e.phase = text[1]
			}
			if o == whole && e.phase != 'X' && e.phase != 'M' {
				return c.leave(1), true
			}
			return o, false
		case "cat":
			text, o := c.value()
			if o == whole {
				e.kind, seenCat = kindOf(unquote(text)), true
				if e.kind == isNothing {
					return c.leave(1), true
				}
			}
			return o, false
		case "name":
			text, o := c.value()
			e.name = unquote(text)
			return o, false
		case "ts", "dur":
			text, o := c.value()
			if o == whole {
				ns, ok := nanoseconds(unquote(text))
				if !ok {
					e.badTime = true
				} else if key[0] == 't' {
					e.ts, e.hasTS = ns, true
					e.fraction = bytes.IndexByte(text, '.') >= 0
				} else {
					e.dur = ns
				}
			}
			return o, false
		case "pid":
			text, o := c.value()
			e.pid, e.pidText = number(text, 0), text
			return o, false
		case "tid":
			text, o := c.value()
			e.tid = number(text, 0)
			return o, false
		case "args":
			if seenCat && e.hasTS && (e.kind == isOp || e.kind == isPython) {
				_, o := c.value()
				return o, false
			}
			if seenCat && e.kind != isHostMark && e.kind != isGPUMark {
				return readArgs(c, &e.args), false
			}
			var o outcome
			args, o = c.value()
			return o, false
		}
		_, o := c.value()
		return o, false
	})
	if o != whole {
		return o
	}
	switch {
	case e.phase == 'M' && (string(e.name) == "process_name" || string(e.name) == "thread_name"):
		e.kind = isMeta
	case e.phase != 'X':
		e.kind = isNothing
	}
	if e.kind != isNothing && e.kind != isOp && e.kind != isPython && len(args) > 0 && args[0] == '{' {
		sub := cursor{b: args, lenient: c.lenient}
		if readArgs(&sub, &e.args) != whole {
			return bad
		}
	}
	return whole
}

func readArgs(c *cursor, a *eventArgs) outcome {
	c.blank()
	if c.i < len(c.b) && c.b[c.i] != '{' {
		_, o := c.value()
		return o
	}
	return c.fields(func(key []byte) (outcome, bool) {
		text, o := c.value()
		if o != whole {
			return o, false
		}
		switch string(key) {
		case "device", "Device":
			a.device = number(text, -1)
		case "stream":
			a.stream = number(text, -1)
		case "correlation":
			a.correlation = number(text, -1)
		case "graph node id":
			a.node = number(text, 0)
		case "bytes":
			a.bytes = max(0, number(text, 0))
		case "grid":
			a.shape.grid = triple(text)
		case "block":
			a.shape.block = triple(text)
		case "name":
			a.name = unquote(text)
		case "class":
			a.class = unquote(text)
		case "step":
			a.step = number(text, noStep)
		case "layer":
			a.layer = number(text, -1)
		}
		return o, false
	})
}

// unquote returns the inside of a string's text, or the text itself.
func unquote(text []byte) []byte {
	if len(text) >= 2 && text[0] == '"' {
		return text[1 : len(text)-1]
	}
	return text
}

// number reads an integer, or the last number in a string such as "stream 7".
func number(text []byte, otherwise int64) int64 {
	if len(text) >= 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
		i := len(text)
		for i > 0 && text[i-1] >= '0' && text[i-1] <= '9' {
			i--
		}
		text = text[i:]
	}
	if v, ok := integer(text); ok {
		return v
	}
	return otherwise
}

// triple reads [x, y, z] of positive 32-bit numbers; zeros where it is not one.
func triple(text []byte) (t [3]int32) {
	if len(text) < 2 || text[0] != '[' {
		return t
	}
	at, v := 0, int64(0)
	digits := false
	for _, c := range text[1:] {
		switch {
		case c >= '0' && c <= '9':
			v, digits = v*10+int64(c-'0'), true
			if v > 1<<31-1 {
				return [3]int32{}
			}
		case c == ',' || c == ']':
			if !digits || at == 3 {
				return [3]int32{}
			}
			t[at] = int32(v)
			at, v, digits = at+1, 0, false
		case isBlank(c):
		default:
			return [3]int32{}
		}
	}
	if at != 3 {
		return [3]int32{}
	}
	return t
}

// text undoes the escapes of a string. Escapes that are none stay as written,
// control characters become spaces, broken UTF-8 the replacement character.
// odd counts what had to be repaired.
func text(raw []byte, odd *int64) string {
	clean := true
	for _, c := range raw {
		if c == '\\' || c < ' ' || c == 0x7f || c >= utf8.RuneSelf {
			clean = false
			break
		}
	}
	if clean {
		return string(raw)
	}
	return decode(raw, true, odd)
}

// plainText is text without escapes: what a database has.
func plainText(raw []byte, odd *int64) string { return decode(raw, false, odd) }

func decode(raw []byte, escapes bool, odd *int64) string {
	repaired := false
	out := make([]rune, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		switch {
		case escapes && c == '\\' && i+1 < len(raw):
			r, n := unescape(raw[i:])
			if n == 0 {
				r, n, repaired = '\\', 1, true
			}
			if r < ' ' {
				r = ' '
			}
			out = append(out, r)
			i += n
		case escapes && c == '\\':
			out, repaired = append(out, '\\'), true
			i++
		case c < ' ' || c == 0x7f:
			out, repaired = append(out, ' '), true
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			repaired = repaired || r == utf8.RuneError && n == 1
			out = append(out, r)
			i += n
		}
	}
	if repaired {
		*odd++
	}
	return string(out)
}

// unescape reads one escape and says how long it is; 0: it is none.
func unescape(raw []byte) (rune, int) {
	switch raw[1] {
	case '"', '\\', '/':
		return rune(raw[1]), 2
	case 'b', 'f', 'n', 'r', 't':
		return ' ', 2
	case 'u':
		if len(raw) >= 6 {
			if v, err := strconv.ParseUint(string(raw[2:6]), 16, 16); err == nil {
				return rune(v), 6
			}
		}
	}
	return 0, 0
}
