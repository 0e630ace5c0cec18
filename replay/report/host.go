package report

import (
	"cmp"
	"fmt"
	"slices"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// HostPhase is the time that one phase of the host took in all, inside and
// outside of steps. Phases of different lanes run at the same time.
type HostPhase struct {
	Phase string `json:"phase"` // read, tokenize, schedule, …
	Lane  string `json:"lane"`
	Calls int64  `json:"calls"`
	Total int64  `json:"total_ns"`
}

// hostBook adds up host phases while a timeline is read.
type hostBook struct {
	at     map[[2]int32]int
	phases []HostPhase
}

func (b *hostBook) add(rows []timeline.Event, names *datasets.Names) {
	for i := range rows {
		e := &rows[i]
		if e.Role != timeline.Phase && e.Role != timeline.Beside || e.End < e.Start {
			continue
		}
		key := [2]int32{e.Kernel, e.Lane}
		n, ok := b.at[key]
		if !ok {
			if b.at == nil {
				b.at = map[[2]int32]int{}
			}
			n = len(b.phases)
			b.at[key] = n
			b.phases = append(b.phases, HostPhase{Phase: names.Name(e.Kernel), Lane: names.Name(e.Lane)})
		}
		b.phases[n].Calls++
		b.phases[n].Total += e.End - e.Start
	}
}

// sorted returns the phases, the longest first.
func (b *hostBook) sorted() []HostPhase {
	slices.SortStableFunc(b.phases, func(x, y HostPhase) int {
		return cmp.Or(cmp.Compare(y.Total, x.Total), cmp.Compare(x.Phase, y.Phase), cmp.Compare(x.Lane, y.Lane))
	})
	return b.phases
}

// hosts is the table of the host's phases.
func (r *Report) hosts() table {
	t := table{head: []string{"host phase", "on", "times", "total ms", "ms each"}}
	for _, h := range r.Host {
		t.add(h.Phase, h.Lane, thousands(h.Calls), ms(float64(h.Total)),
			fmt.Sprintf("%.4f", float64(h.Total)/float64(h.Calls)/1e6))
	}
	return t
}
