package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/replay/attribute"
)

// Bounds above which something is worth saying.
const (
	launchBound      = 0.5  // of the wall without the profiler's time, in gaps that are the host's
	deviceBound      = 0.9  // of the same, in which work runs
	idleBound        = 0.05 // of the same, in gaps with a cause
	waitBound        = 0.1  // of the device span, waiting in collectives
	peersBound       = 0.05 // of the wall
	unexplainedBound = 0.02 // of the wall
	unknownBound     = 0.05 // of the device span, in kernels without a class
	overlapBound     = 0.05 // of the wall
)

// unknownClass is what importers call kernels that no rule matches.
const unknownClass = "unclassified"

// find fills in the findings of every section: faults first, then what dominates.
func (r *Report) find() {
	for i := range r.Sections {
		s := &r.Sections[i]
		for _, rule := range []func(*Report, *attribute.Section) (code, text string){
			(*Report).cacheCast, (*Report).launches, (*Report).dominant, (*Report).idles, (*Report).waiting, (*Report).peers,
			(*Report).unknown, (*Report).unexplained, (*Report).overlaps,
		} {
			if code, text := rule(r, s); text != "" {
				r.Findings = append(r.Findings, Finding{code, s.Kind, text})
			}
		}
	}
	if len(r.Sections) > 1 {
		r.most()
	}
}

// most puts the findings of the kind of steps that took most of the time first.
func (r *Report) most() {
	wall := map[string]int64{}
	for _, s := range r.Sections {
		wall[s.Kind] = s.Wall
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(wall[b.Kind], wall[a.Kind]) })
}

// imported adds what an importer found; what makes figures unreliable comes first.
func (r *Report) imported(found []datasets.Finding) {
	var first []Finding
	for _, f := range found {
		text := datasets.ShownName(f.Text)
		if f.Rank >= 0 {
			text = fmt.Sprintf("rank %d: %s", f.Rank, text)
		}
		if f.Severity == "unreliable" {
			first = append(first, Finding{f.Code, "", "unreliable: " + text})
			continue
		}
		r.Warnings = append(r.Warnings, text)
	}
	r.Findings = append(first, r.Findings...)
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func percent(f float64) string {
	if f < 0.1 || f > 0.99 && f < 1 {
		return fmt.Sprintf("%.1f %%", 100*f)
	}
	return fmt.Sprintf("%.0f %%", 100*f)
}

func class(s *attribute.Section, name string) *attribute.Row {
	for i := range s.Classes {
		if s.Classes[i].Class == name {
			return &s.Classes[i]
		}
	}
	return nil
}

func amount(s *attribute.Section, entry attribute.Entry) int64 {
	for _, a := range s.Ledger {
		if a.Name == entry.String() {
			return a.NS
		}
	}
	return 0
}

// cacheCast names a copy of the cache to another format, which no sound step has.
func (r *Report) cacheCast(s *attribute.Section) (code, text string) {
	c := class(s, string(kernels.CacheCast))
	if c == nil || c.Self == 0 {
		return "", ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s of the %s", c.Class, percent(share(c.Self, s.Span)), stepName(s.Kind))
	if c.Slots > 0 {
		fmt.Fprintf(&b, ": it reads and writes the whole pool, %s slots", thousands(c.Slots))
		if used := attended(s); used > 0 && used < c.Slots {
			fmt.Fprintf(&b, ", of which the batch uses %s", thousands(used))
		}
	} else {
		b.WriteString(": the cache is copied to another format before it is read")
	}
	fmt.Fprintf(&b, " (%s, %s ms a step)", times(perStep(s, c.Calls)), ms(mean(s, c.Self)))
	return string(kernels.CacheCast), b.String()
}

// attended returns the most cache slots that attention read in one call.
func attended(s *attribute.Section) int64 {
	var slots int64
	for _, c := range s.Classes {
		if c.Class == string(kernels.Attention) || strings.HasPrefix(c.Class, "attn.decode") || strings.HasPrefix(c.Class, "attn.prefill") {
			slots = max(slots, c.Slots)
		}
	}
	return slots
}

// balance is what a section's wall time without the profiler's was for.
type balance struct {
	wall   int64
	busy   int64 // work ran, of these steps or of others
	launch int64 // what came next was not launched yet
	host   int64 // the host was in a phase, or had no more work
	wait   int64 // the host was in a call that waits for the device
	queue  int64 // launched work had not begun
}

func balanceOf(s *attribute.Section) balance {
	b := balance{
		wall: s.Wall - amount(s, attribute.Profiler), busy: amount(s, attribute.Overlap) + amount(s, attribute.Elsewhere),
		launch: amount(s, attribute.Launch), host: amount(s, attribute.Host), wait: amount(s, attribute.Wait),
		queue: amount(s, attribute.Queue) + amount(s, attribute.Dependency),
	}
	for i := range s.Classes {
		b.busy += s.Classes[i].Self
	}
	return b
}

// launches says that the device waits for the host, or that it does not.
func (r *Report) launches(s *attribute.Section) (code, text string) {
	b := balanceOf(s)
	idle := b.launch + b.host + b.wait
	switch {
	case share(idle, b.wall) >= launchBound:
		waits := ""
		if b.wait > 0 {
			waits = fmt.Sprintf(", %s ms while it waits in %s", ms(mean(s, b.wait)), waitedIn(s.Waits))
		}
		return "launch-bound", fmt.Sprintf("launch-bound: %s ms of kernels in a %s of %s ms; for %s of it the device waits for the host (%s ms for launches, %s ms in host phases%s)",
			ms(mean(s, b.busy)), stepName(s.Kind), ms(mean(s, b.wall)), percent(share(idle, b.wall)), ms(mean(s, b.launch)), ms(mean(s, b.host)), waits)
	case share(b.busy, b.wall) >= deviceBound && len(s.Classes) > 0:
		c := &s.Classes[0]
		return "device-bound", fmt.Sprintf("device-bound: the device works for %s of the %s (%s of %s ms), most of it on %s (%s ms)",
			percent(share(b.busy, b.wall)), stepName(s.Kind), ms(mean(s, b.busy)), ms(mean(s, b.wall)), c.Class, ms(mean(s, c.Self)))
	}
	return "", ""
}

// waitedIn names the one or two calls in which most of the waiting was.
func waitedIn(waits []attribute.Amount) string {
	switch len(waits) {
	case 0:
		return "calls"
	case 1:
		return waits[0].Name
	case 2:
		return waits[0].Name + " and " + waits[1].Name
	}
	return fmt.Sprintf("%s and %d other calls", waits[0].Name, len(waits)-1)
}

// idles says why the device idles where that is neither most of the time nor
// little of it.
func (r *Report) idles(s *attribute.Section) (code, text string) {
	b := balanceOf(s)
	idle := b.launch + b.host + b.wait + b.queue
	if share(idle, b.wall) < idleBound || share(b.launch+b.host+b.wait, b.wall) >= launchBound {
		return "", ""
	}
	var causes []string
	for _, c := range []struct {
		ns   int64
		text string
	}{{b.launch, "for launches"}, {b.wait, "while the host waits in " + waitedIn(s.Waits)}, {b.host, "for the host's other work"}, {b.queue, "between launched kernels"}} {
		if share(c.ns, b.wall) >= 0.001 {
			causes = append(causes, fmt.Sprintf("%s ms %s", ms(mean(s, c.ns)), c.text))
		}
	}
	return "idle", fmt.Sprintf("the device idles for %s of the %s: %s", percent(share(idle, b.wall)), stepName(s.Kind), strings.Join(causes, ", "))
}

// dominant says which class takes most, and how near it is to the machine's best.
func (r *Report) dominant(s *attribute.Section) (code, text string) {
	if len(s.Classes) == 0 || s.Classes[0].Class == string(kernels.CacheCast) {
		return "", ""
	}
	c := &s.Classes[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s of the %s's device time (%s, %s ms a step", c.Class, percent(share(c.Self, s.Span)), stepName(s.Kind),
		times(perStep(s, c.Calls)), ms(mean(s, c.Self)))
	if gb := rate(s, c.Bytes, c.Total); gb > 0 {
		fmt.Fprintf(&b, ", %s GB/s", figure(gb))
	}
	if c.Bound > 0 {
		fmt.Fprintf(&b, ", %s times the bound of %s", figure(float64(c.Total)/float64(c.Bound)), r.Machine.Name)
	}
	b.WriteString(")")
	return "dominant", b.String()
}

func (r *Report) waiting(s *attribute.Section) (code, text string) {
	if share(s.Comm.Waiting, s.Span) < waitBound {
		return "", ""
	}
	text = fmt.Sprintf("ranks wait for each other inside collectives for %s of the %s's device time (%s ms a step)",
		percent(share(s.Comm.Waiting, s.Span)), stepName(s.Kind), ms(mean(s, s.Comm.Waiting)))
	last := slices.MaxFunc(s.Comm.Ranks, func(a, b attribute.Skew) int { return cmp.Compare(a.Last, b.Last) })
	if last.Collectives > 0 && 2*last.Last > last.Collectives {
		text += fmt.Sprintf("; rank %d arrives last at %s of them", last.Rank, percent(share(last.Last, last.Collectives)))
	}
	return "waiting", text
}

func (r *Report) peers(s *attribute.Section) (code, text string) {
	ns := amount(s, attribute.Peers)
	if share(ns, s.Wall) < peersBound {
		return "", ""
	}
	return "peers", fmt.Sprintf("ranks that are done wait for others for %s of the %s", percent(share(ns, s.Wall)), stepName(s.Kind))
}

func (r *Report) unknown(s *attribute.Section) (code, text string) {
	c := class(s, unknownClass)
	if c == nil || share(c.Self, s.Span) < unknownBound {
		return "", ""
	}
	return "unclassified", fmt.Sprintf("kernels without a class take %s of the %s's device time: see --by kernel", percent(share(c.Self, s.Span)), stepName(s.Kind))
}

func (r *Report) unexplained(s *attribute.Section) (code, text string) {
	ns := amount(s, attribute.Unexplained)
	if share(ns, s.Wall) < unexplainedBound {
		return "", ""
	}
	return "unexplained", fmt.Sprintf("%s of the %s is unexplained (%s ms): the device idles and no host phase says why", percent(share(ns, s.Wall)), stepName(s.Kind), ms(mean(s, ns)))
}

func (r *Report) overlaps(s *attribute.Section) (code, text string) {
	ns := amount(s, attribute.Overlap)
	if share(ns, s.Wall) < overlapBound {
		return "", ""
	}
	return "overlap", fmt.Sprintf("kernels of several classes run at once for %s of the %s; no class has that time as its own", percent(share(ns, s.Wall)), stepName(s.Kind))
}

// stepName is what a step of a kind is called in a sentence.
func stepName(kind string) string {
	if kind == "step" || kind == "" {
		return "step"
	}
	return kind + " step"
}
