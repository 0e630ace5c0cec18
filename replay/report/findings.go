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
	hostBound        = 0.5  // of the wall without the profiler's time, in gaps that are the host's
	deviceBound      = 0.9  // of the same, in which work runs
	idleBound        = 0.05 // of the wall, in gaps
	waitBound        = 0.1  // of the wall, waiting in collectives
	peersBound       = 0.05 // of the wall
	unexplainedBound = 0.02 // of the wall
	unknownBound     = 0.05 // of the wall, in kernels without a class
	overlapBound     = 0.05 // of the wall
)

// unknownClass is what importers call kernels that no rule matches.
const unknownClass = "unclassified"

// find fills in the findings of every section, those of the most time first. All
// shares are of the wall time of a step.
func (r *Report) find() {
	for i := range r.Sections {
		s := &r.Sections[i]
		type timed struct {
			Finding
			ns int64
		}
		var list []timed
		for _, rule := range []func(*Report, *attribute.Section) (code, text string, ns int64){
			(*Report).cacheCast, (*Report).bound, (*Report).dominant, (*Report).idles, (*Report).waiting,
			(*Report).peers,
			(*Report).unknown, (*Report).unexplained, (*Report).overlaps,
		} {
			if code, text, ns := rule(r, s); text != "" {
				list = append(list, timed{Finding{code, s.Kind, text}, ns})
			}
		}
		slices.SortStableFunc(list, func(a, b timed) int { return cmp.Compare(b.ns, a.ns) })
		for _, f := range list {
			r.Findings = append(r.Findings, f.Finding)
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

// of says what part of a section's steps a time is, and how long that is in one.
func of(s *attribute.Section, ns int64) string {
	return fmt.Sprintf("%s of the %s (%s of %s ms)", percent(share(ns, s.Wall)), stepName(s.Kind), ms(mean(s, ns)),
		ms(mean(s, s.Wall)))
}

// cacheCast names a copy of the cache to another format, which no sound step has.
func (r *Report) cacheCast(s *attribute.Section) (code, text string, ns int64) {
	c := class(s, string(kernels.CacheCast))
	if c == nil || c.Self == 0 {
		return "", "", 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s", c.Class, of(s, c.Self))
	if c.Kernels > 0 {
		fmt.Fprintf(&b, " and %s of all kernels' time", percent(share(c.Kernels, kernelTime(s))))
	}
	if c.Slots > 0 {
		fmt.Fprintf(&b, ": it reads and writes the whole pool, %s slots", thousands(c.Slots))
		if used := attended(s); used > 0 && used < c.Slots {
			fmt.Fprintf(&b, ", of which the batch uses %s", thousands(used))
		}
	} else {
		b.WriteString(": the cache is copied to another format before it is read")
	}
	fmt.Fprintf(&b, ", in %s", times(perStep(s, c.Calls)))
	// A fault stands before what merely takes longer, but not before the time in which
	// nothing runs.
	return string(kernels.CacheCast), b.String(), s.Classes[0].Self
}

// attended returns the most cache slots that attention read in one call.
func attended(s *attribute.Section) int64 {
	var slots int64
	for _, c := range s.Classes {
		if c.Class == string(kernels.Attention) || strings.HasPrefix(c.Class, "attn.decode") ||
			strings.HasPrefix(c.Class, "attn.prefill") {
			slots = max(slots, c.Slots)
		}
	}
	return slots
}

// balance is what a section's wall time was for.
type balance struct {
	busy, idle int64 // work ran, of these steps or of others; the rest
	host       int64 // what came next was not launched, or the host had no more
	profiler   int64
}

func balanceOf(s *attribute.Section) balance {
	b := balance{
		busy:     amount(s, attribute.Overlap) + amount(s, attribute.Elsewhere),
		host:     amount(s, attribute.Launch) + amount(s, attribute.Host) + amount(s, attribute.Wait),
		profiler: amount(s, attribute.Profiler),
	}
	for i := range s.Classes {
		b.busy += s.Classes[i].Self
	}
	b.idle = s.Wall - b.busy
	return b
}

// bound says that the device waits for the host, or that it does not.
func (r *Report) bound(s *attribute.Section) (code, text string, ns int64) {
	b := balanceOf(s)
	switch {
	case b.hostBound(s):
		code = "launch-bound"
		if 2*amount(s, attribute.Launch) < b.host { // launches are the smaller part of the host's
			code = "host-bound"
		}
		return code, fmt.Sprintf("%s: the device idles for %s: %s", code, of(s, b.idle), causes(s)), b.idle
	case share(b.busy, s.Wall-b.profiler) >= deviceBound && len(s.Classes) > 0:
		c := &s.Classes[0]
		return "device-bound", fmt.Sprintf("device-bound: the device works for %s, the largest part on %s (%s ms)",
			of(s, b.busy), c.Class, ms(mean(s, c.Self))), c.Self
	}
	return "", "", 0
}

func (b *balance) hostBound(s *attribute.Section) bool {
	return share(b.host, s.Wall-b.profiler) >= hostBound
}

// causes lists why the device idles, the longest first.
func causes(s *attribute.Section) string {
	type cause struct {
		ns   int64
		text string
	}
	list := []cause{
		{amount(s, attribute.Launch), "for launches"}, {amount(s, attribute.Wait),
			"while the host waits in " + waitedIn(s.Waits)},
		{amount(s, attribute.Host), "for the host's other work"}, {amount(s, attribute.Queue),
			"before work that was launched began"},
		{amount(s, attribute.Dependency), "for work of another stream, or an event"}, {amount(s, attribute.Peers),
			"for other ranks"},
		{amount(s, attribute.Profiler), "while the profiler held the host up"}, {amount(s, attribute.Unexplained),
			"for reasons that are not recorded"},
	}
	slices.SortStableFunc(list, func(a, b cause) int { return cmp.Compare(b.ns, a.ns) })
	var texts []string
	for i, c := range list {
		if c.ns > 0 && (i == 0 || share(c.ns, s.Wall) >= 0.001) {
			texts = append(texts, fmt.Sprintf("%s ms %s", ms(mean(s, c.ns)), c.text))
		}
	}
	return strings.Join(texts, ", ")
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
func (r *Report) idles(s *attribute.Section) (code, text string, ns int64) {
	b := balanceOf(s)
	if share(b.idle, s.Wall) < idleBound || b.hostBound(s) {
		return "", "", 0
	}
	return "idle", fmt.Sprintf("the device idles for %s: %s", of(s, b.idle), causes(s)), b.idle
}

// dominant says which class takes most, and how near it is to the machine's best.
func (r *Report) dominant(s *attribute.Section) (code, text string, ns int64) {
	if len(s.Classes) == 0 || s.Classes[0].Class == string(kernels.CacheCast) {
		return "", "", 0
	}
	c := &s.Classes[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s", c.Class, of(s, c.Self))
	if c.Kernels > 0 {
		fmt.Fprintf(&b, " and %s of all kernels' time", percent(share(c.Kernels, kernelTime(s))))
	}
	fmt.Fprintf(&b, ", in %s", times(perStep(s, c.Calls)))
	if gb := rate(s, c.Bytes, c.Total); gb > 0 {
		fmt.Fprintf(&b, " at %s GB/s", figure(gb))
	}
	if c.Bound > 0 {
		fmt.Fprintf(&b, ", %s times the bound of %s", figure(float64(c.Total)/float64(c.Bound)), r.Machine.Name)
	}
	return "dominant", b.String(), c.Self
}

func (r *Report) waiting(s *attribute.Section) (code, text string, ns int64) {
	ns = s.Comm.Waiting
	if share(ns, s.Wall) < waitBound {
		return "", "", 0
	}
	text = "ranks wait for each other inside collectives for " + of(s, ns)
	last := slices.MaxFunc(s.Comm.Ranks, func(a, b attribute.Skew) int { return cmp.Compare(a.Last, b.Last) })
	if last.Collectives > 0 && 2*last.Last > last.Collectives {
		text += fmt.Sprintf("; rank %d arrives last at %s of them", last.Rank,
			percent(share(last.Last, last.Collectives)))
	}
	return "waiting", text, ns
}

func (r *Report) peers(s *attribute.Section) (code, text string, ns int64) {
	ns = amount(s, attribute.Peers)
	if share(ns, s.Wall) < peersBound {
		return "", "", 0
	}
	return "peers", "ranks that are done wait for others for " + of(s, ns), ns
}

func (r *Report) unknown(s *attribute.Section) (code, text string, ns int64) {
	c := class(s, unknownClass)
	if c == nil || share(c.Self, s.Wall) < unknownBound {
		return "", "", 0
	}
	return "unclassified", fmt.Sprintf("kernels without a class take %s: see --by kernel", of(s, c.Self)), c.Self
}

func (r *Report) unexplained(s *attribute.Section) (code, text string, ns int64) {
	ns = amount(s, attribute.Unexplained)
	if share(ns, s.Wall) < unexplainedBound {
		return "", "", 0
	}
	return "unexplained", fmt.Sprintf("%s is unexplained: the device idles and nothing that was recorded says why",
		of(s, ns)), ns
}

func (r *Report) overlaps(s *attribute.Section) (code, text string, ns int64) {
	ns = amount(s, attribute.Overlap)
	if share(ns, s.Wall) < overlapBound {
		return "", "", 0
	}
	return "overlap", fmt.Sprintf("kernels of several classes run at once for %s; no class has that time as its own",
		of(s, ns)), ns
}

// stepName is what a step of a kind is called in a sentence.
func stepName(kind string) string {
	if kind == "step" || kind == "" {
		return "step"
	}
	return kind + " step"
}
