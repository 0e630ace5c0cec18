package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/report"
	"glmbatch/units"
)

// Write writes what was measured, as text or json. Its error is also that stamps do not
// hold.
func (b *Bench) Write(w io.Writer, format string, style report.Style) error {
	var err error
	if format == "json" {
		err = b.json(w)
	} else {
		err = b.text(w, style)
	}
	if err != nil {
		return err
	}
	return b.stampsHold()
}

// attribute makes the ledger of each case from its spans, and finishes their file.
func (b *Bench) attribute() error {
	if file := b.file; file != nil {
		b.file = nil
		if err := file.Close(); err != nil {
			return err
		}
	}
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" {
			continue
		}
		source := report.Source{Path: cmp.Or(b.o.Timeline, "bench"), Rows: r.spans}
		var err error
		if r.ledger, err = source.Report(report.Options{By: b.o.By, Machine: b.o.Machine}); err != nil {
			return fmt.Errorf("%v: %w", r.of, err)
		}
	}
	return nil
}

// resultJSON is the whole result. Times are ns, rates a second.
type resultJSON struct {
	Schema     string            `json:"schema"`
	Model      string            `json:"model"`
	Synthetic  bool              `json:"synthetic"`
	TP         int               `json:"tp"`
	Ranks      int               `json:"ranks"`
	Layers     int               `json:"layers"`
	Parameters int64             `json:"parameters"`
	Weights    int64             `json:"weight_bytes"` // on each rank
	KVCache    kernels.Format    `json:"kv_cache"`
	KVSlots    int64             `json:"kv_slots"`
	Cache      int64             `json:"cache_bytes"` // on each rank
	Rounding   []glm5.Rounding   `json:"weight_rounding,omitempty"`
	LoadNS     int64             `json:"load_ns"`
	Device     kernels.Info      `json:"device"`
	Machine    *roofline.Machine `json:"machine"` // null: unknown
	Seed       uint64            `json:"seed"`
	Program    map[string]string `json:"program"`
	Results    []line            `json:"results"`
}

type line struct {
	*Result
	RecordingOverhead float64         `json:"recording_overhead"`
	OverFloor         float64         `json:"over_floor"` // 0: unknown
	Report            json.RawMessage `json:"report"`     // of the recorded steps, as glmbatch report; null: skipped
}

func (b *Bench) json(w io.Writer) error {
	o := b.model.Options()
	j := resultJSON{Schema: "glmbatch.bench/1", Model: b.Name, Synthetic: b.Recipe != "", TP: b.o.TP,
		Ranks:  b.group.Ranks(),
		Layers: b.model.Config.Layers, Parameters: b.Params, Weights: b.Rank.Weights, KVCache: o.KVCache,
		KVSlots: b.slots(),
		Cache:   b.slots() * b.pool.perToken, LoadNS: b.loaded.Nanoseconds(), Device: b.group.Info(),
		Machine:  b.o.Machine,
		Rounding: b.model.Rounding(), Seed: b.o.Seed, Program: b.o.Versions}
	for i := range b.results {
		r := &b.results[i]
		line := line{Result: r, RecordingOverhead: r.overhead(), OverFloor: r.ratio()}
		if r.ledger != nil {
			var text bytes.Buffer
			if err := r.ledger.Write(&text, "json", report.Style{}); err != nil {
				return err
			}
			line.Report = text.Bytes()
		}
		j.Results = append(j.Results, line)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(j)
}

func (b *Bench) slots() int64 { return int64(b.model.Options().Pages) * kernels.PageTokens }

func (b *Bench) text(w io.Writer, style report.Style) error {
	var s strings.Builder
	b.head(&s)
	b.table(&s)
	b.notes(&s)
	for i := range b.results {
		r := &b.results[i]
		if r.ledger == nil {
			continue
		}
		fmt.Fprintf(&s, "\n%v\n", r.of)
		if err := r.ledger.Write(&s, "text", style); err != nil {
			return err
		}
		if r.Stamps != nil {
			r.Stamps.print(&s, r.of)
		}
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (b *Bench) head(s *strings.Builder) {
	c, info, o := &b.model.Config, b.group.Info(), b.model.Options()
	who := fmt.Sprintf("%d of %d ranks", b.group.Ranks(), b.o.TP)
	if b.group.Ranks() == b.o.TP {
		who = fmt.Sprintf("all %d ranks", b.o.TP)
	}
	if b.o.TP == 1 {
		who = "one rank"
	}
	weights := "random weights"
	if b.Recipe == "" {
		weights = "its weights"
	}
	report.Wrap(s, fmt.Sprintf("%s, %s: %d layers, %s parameters, %s (%s on a rank), on %s (%s)", b.Name, who, c.Layers,
		units.Count(b.Params),
		weights, units.Bytes(b.Rank.Weights), info.Name, info.Detail), report.DefaultWidth)
	report.Wrap(s, fmt.Sprintf("caches: %s, %s tokens, %s on a rank; loaded in %.1f s", o.KVCache,
		units.Digits(b.slots()),
		units.Bytes(b.slots()*b.pool.perToken), b.loaded.Seconds()), report.DefaultWidth)
	if r := b.model.Rounding(); len(r) > 0 {
		report.Wrap(s, "weights rounded to FP8: "+glm5.RoundingText(r), report.DefaultWidth)
	}
	s.WriteByte('\n')
}

// table has a line for each case. A figure that is unknown is empty.
func (b *Bench) table(s *strings.Builder) {
	const form = "%-8s%6s%9s%11s%9s%9s%10s%11s%9s%10s%8s\n"
	fmt.Fprintf(s, form, "", "batch", "context", "step ms", "min", "p90", "run ms", "floor ms", "× floor",
		"tokens/s", "experts")
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" {
			fmt.Fprintf(s, "%-8s%6d%9s  %s\n", r.Kind, r.Batch, units.Digits(int64(r.Context)), r.Skipped)
			continue
		}
		floor, ratio := "", ""
		if r.Floor > 0 {
			floor, ratio = milli(r.Floor), fmt.Sprintf("%.2f", r.ratio())
		}
		label := r.Kind
		if r.of.cast {
			label = "· cast"
		}
		fmt.Fprintf(s, form, label, fmt.Sprint(r.Batch), units.Digits(int64(r.Context)), milli(r.Step.Median),
			milli(r.Step.Min), milli(r.Step.P90),
			milli(r.Run.Median), floor, ratio, units.Figure(r.TokensPerSecond), fmt.Sprintf("%.1f", r.Experts))
	}
}

// milli is a time in ms with four figures or so.
func milli(ns int64) string {
	ms := float64(ns) / 1e6
	switch {
	case ms < 100:
		return fmt.Sprintf("%.3f", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.1f", ms)
	}
	return units.Digits(int64(ms))
}

// notes say what the figures mean and what they leave out.
func (b *Bench) notes(s *strings.Builder) {
	s.WriteByte('\n')
	line := func(format string, args ...any) { report.Wrap(s, fmt.Sprintf(format, args...), report.DefaultWidth) }
	if b.o.Machine != nil {
		line("floor: the bytes that the calls of a step must move at least, at the %s/s that %s reads",
			units.Bytes(b.o.Machine.Read), b.o.Machine.Name)
	} else {
		line("no floor: the read bandwidth of %s is not known; --machine takes another's", b.group.Info().Name)
	}
	if n := b.group.Ranks(); n < b.o.TP {
		line("collectives are local: sums take the %d of %d ranks that are here, so no time for links is in these "+
			"figures", n, b.o.TP)
	}
	if c := b.group.Info().Clock; c > 0 {
		line("spans are on the host's clock to within %.1f us", float64(c)/1e3)
	}
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" {
			continue
		}
		ahead := ""
		if b.group.Info().Beside {
			ahead = ", launch " + micro(r.Launch.Median) + " us"
		}
		if r.Ahead {
			ahead += ", while the step before runs"
		}
		text := fmt.Sprintf("%v: %s calls, %s, list %s us, upload %s us%s; recording %+.1f %% (medians of %d)", r.of,
			units.Digits(int64(r.Calls)), units.Bytes(r.Bytes),
			micro(r.Schedule.Median), micro(r.Upload.Median), ahead, 100*r.overhead(), r.Step.N)
		if r.Experts > 0 {
			text += fmt.Sprintf("; even routing would give tokens to %.1f experts of a layer", r.ExpertsUniform)
		}
		if r.of.prefill && r.MatrixShare > 0 {
			text += fmt.Sprintf("; %.1f %% of the matrix rate of %s, %sFLOP/s", 100*r.MatrixShare, b.o.Machine.Name,
				strings.TrimSuffix(units.Bytes(b.o.Machine.FLOPs[kernels.OnMatrix]), "B"))
		}
		line("%s", text)
	}
}

func micro(ns int64) string { return fmt.Sprintf("%.0f", float64(ns)/1e3) }
