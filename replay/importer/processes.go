package importer

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
)

// One file may have the events of several processes: a merged profile, or an
// export of ours with several ranks. Correlation ids are a process's own, so that
// events are kept apart by what their pid says until the file is read, and then
// put together again to processes: by a label in the pid or in the process's name,
// or by which process launched the work of a device.

// pids are the processes of a file as its pids name them.
type pids struct {
	of   map[string]int32
	list []pid
	last int32 // the one that was asked for last
}

type pid struct {
	text     string          // as in the file, quotes and all
	name     string          // of the process
	rank     int32           // that its name or label says, -1: none
	label    string          // what all pids of one process have in common; "": none
	exported bool            // an export of ours: its events say their step, class and layer
	said     bool            // some did
	threads  map[int64]int64 // of an export: tid -> thread
	calls    int64
	work     int64
	proc     int32 // where it belongs, once the file is read
}

// maxPids bounds the processes of one file.
const maxPids = 1 << 14

var (
	rankName   = regexp.MustCompile(`^rank (\d{1,6})$`)
	rankLabel  = regexp.MustCompile(`^\[([^\]]{1,64})\] ?`)
	tensorRank = regexp.MustCompile(`TP[-_]?(\d{1,6})`)
)

// number returns the place of a pid in the list.
func (p *pids) number(text []byte) (int32, error) {
	if int(p.last) < len(p.list) && p.list[p.last].text == string(text) {
		return p.last, nil
	}
	i, ok := p.of[string(text)]
	if !ok {
		if len(p.list) >= maxPids {
			return 0, fmt.Errorf("more than %d processes in one file: this is no trace", maxPids)
		}
		i = int32(len(p.list))
		if p.of == nil {
			p.of = map[string]int32{}
		}
		n := pid{text: string(text), rank: -1}
		if m := rankLabel.FindSubmatch(unquote(text)); m != nil {
			n.label = string(m[1])
			if tp := tensorRank.FindStringSubmatch(n.label); tp != nil {
				n.rank = rankNumber(tp[1])
			}
		}
		p.list = append(p.list, n)
		p.of[n.text] = i
	}
	p.last = i
	return i, nil
}

func rankNumber(digits string) int32 {
	v, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return -1
	}
	return int32(v)
}

// named takes in what a process is called.
func (p *pid) named(name []byte) {
	p.name = string(bytes.TrimSpace(name))
	if m := rankName.FindStringSubmatch(p.name); m != nil {
		p.rank, p.label, p.exported = rankNumber(m[1]), p.name, true
	}
	if p.name == hostProcess {
		p.exported = true
	}
}

// hostProcess is what an export of ours calls the host of all ranks.
const hostProcess = "host"

// settle makes processes of the pids of a file, whose first is proc main, and gives
// every record and window from first on its process.
func (t *trace) settle(p *pids, main int32, firstRecord, firstWindow int) {
	labels := map[string]int32{}
	used := false // main has been given away
	process := func(label string, rank int32) int32 {
		i, ok := labels[label]
		switch {
		case ok:
			return i
		case !used:
			i, used = main, true
		default:
			i = int32(len(t.procs))
			of := t.procs[main]
			t.procs = append(t.procs, proc{file: of.file, number: of.number, rank: -1, world: of.world,
				coarse: of.coarse, parts: counters{truncatedAt: -1}})
		}
		if label != "" {
			t.procs[i].label, t.procs[i].labelled = rank, true
		}
		labels[label] = i
		return i
	}
	callers := 0
	for i := range p.list {
		n := &p.list[i]
		if n.label == "" && n.calls > 0 {
			callers++
		}
	}
	for i := range p.list {
		n := &p.list[i]
		switch {
		case n.label != "":
			n.proc = process(n.label, n.rank)
			t.procs[n.proc].exported = n.exported && n.said
		case n.name == hostProcess && n.exported && n.calls == 0 && n.work == 0:
			n.proc = -1
		case callers > 1 && n.calls > 0:
			n.proc = process("pid "+n.text, -1)
			t.procs[n.proc].labelled, t.procs[n.proc].pid = false, number([]byte(n.text), 0)
		case callers > 1:
			n.proc = -2 // by who launched its work
		default:
			n.proc = process("", -1)
		}
	}
	if !used {
		process("", -1)
	}
	host := int32(-1) // of windows of all ranks
	for k := firstWindow; k < len(t.windows); k++ {
		w := &t.windows[k]
		at := p.list[w.proc].proc
		switch {
		case at == -2:
			at = main
		case at == -1 && host < 0:
			host = int32(len(t.procs))
			t.procs = append(t.procs, proc{file: t.procs[main].file, number: t.procs[main].number, rank: -1,
				everyRank: true, parts: counters{truncatedAt: -1}})
			at = host
		case at == -1:
			at = host
		}
		w.proc = at
	}
	loose := false
	for k := firstRecord; k < t.n; k++ {
		r := t.at(int32(k))
		if at := p.list[r.proc].proc; at >= 0 {
			r.proc = at
		} else {
			r.proc, loose = -1, true
		}
	}
	if !loose {
		return
	}
	launches := t.callsOf(firstRecord)
	for k := firstRecord; k < t.n; k++ {
		if r := t.at(int32(k)); r.proc < 0 {
			r.proc = t.launcher(r, launches, main)
		}
	}
}

// callsOf has the calls of each correlation.
func (t *trace) callsOf(first int) map[int64][]int32 {
	of := map[int64][]int32{}
	for k := first; k < t.n; k++ {
		if r := t.at(int32(k)); r.kind == isAPI && r.correlation > 0 {
			of[r.correlation] = append(of[r.correlation], int32(k))
		}
	}
	return of
}

// launcher is the process whose call launched r: of those of its correlation, the
// last that began before it.
func (t *trace) launcher(r *record, launches map[int64][]int32, otherwise int32) int32 {
	best := int32(-1)
	for _, k := range launches[r.correlation] {
		l := t.at(k)
		if l.start > r.start+launchSlack {
			continue
		}
		if best < 0 || l.start > t.at(best).start {
			best = k
		}
	}
	if best < 0 {
		return otherwise
	}
	return t.at(best).proc
}
