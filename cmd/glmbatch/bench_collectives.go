package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"glmbatch/bench"
	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
	"glmbatch/kernels/ranks"
	"glmbatch/replay/report"
	"glmbatch/units"
)

// collectiveTimes are how long the ranks take for the sum over ranks with
// residual and norm, by the size of the message.
type collectiveTimes struct {
	Schema string           `json:"schema"`
	Ranks  int              `json:"ranks"`
	Device kernels.Info     `json:"device"`
	NCCL   string           `json:"nccl"` // version; "": it could not be used
	Lines  []collectiveLine `json:"results"`
	Notes  []string         `json:"notes"`
}

// collectiveLine is one size. A time that was not taken is 0.
type collectiveLine struct {
	Rows    int32            `json:"rows"` // of collectiveColumns float32 values
	Bytes   int64            `json:"bytes"`
	NS      map[string]int64 `json:"ns"`      // of one call, by way, the median of the slowest ranks'
	NCCLSum int64            `json:"nccl_ns"` // of NCCL's own all-reduce alone, in its own order
}

const (
	collectiveColumns = 6144
	collectiveCalls   = 32 // in a list, one after the other; fewer of large messages
	collectiveRounds  = 9  // lists timed
)

// callsOf is how many calls of messages of so many bytes are in a list.
func callsOf(bytes int64) int {
	if bytes > 4<<20 {
		return collectiveCalls / 4
	}
	return collectiveCalls
}

func (f *benchFlags) validateCollectives() error {
	return withCode(exitInput, errors.Join(oneOf("format", f.format, "text", "json"), inRange("ranks", f.Ranks, 1, 8),
		f.device.validate()))
}

// runCollectives times every way at sizes from a row to 64 MB.
func runCollectives(ctx context.Context, f *benchFlags, stdout io.Writer) error {
	t := collectiveTimes{Schema: "glmbatch.collectives/1", Ranks: f.Ranks, Notes: []string{}}
	onCPU := f.device.resolved() == "cpu"
	var sizes []int64
	for _, rows := range []int32{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 2730} {
		if onCPU && rows > 16 { // the rest would tell of its memory alone
			break
		}
		l := collectiveLine{Rows: rows, Bytes: 4 * collectiveColumns * int64(rows), NS: map[string]int64{}}
		t.Lines, sizes = append(t.Lines, l), append(sizes, l.Bytes)
	}
	ways := []cuda.Collective{cuda.OneShot, cuda.TwoShot, cuda.ViaNCCL}
	if onCPU {
		ways = []cuda.Collective{"cpu"}
	} else if f.device.collective != "" {
		ways = []cuda.Collective{cuda.Collective(f.device.collective)}
	}
	for _, way := range ways {
		d := f.device
		if way != "cpu" {
			d.collective = string(way)
		}
		if err := t.take(ctx, &d, way); err != nil {
			if way != cuda.ViaNCCL || len(ways) == 1 {
				return err
			}
			t.Notes = append(t.Notes, err.Error())
		}
	}
	if !onCPU && slices.Contains(ways, cuda.ViaNCCL) && f.Ranks > 1 {
		ns, version, err := cuda.TimeNCCL(f.Ranks, f.device.options(), sizes, collectiveCalls)
		if err != nil {
			t.Notes = append(t.Notes, err.Error())
		}
		t.NCCL = version
		for i := range ns {
			t.Lines[i].NCCLSum = ns[i]
		}
	}
	if f.format == "json" {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(t)
	}
	return t.print(stdout)
}

// take times one way.
func (t *collectiveTimes) take(ctx context.Context, d *deviceFlags, way cuda.Collective) (err error) {
	g, err := d.open(t.Ranks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	t.Device = g.Info()
	most := t.Lines[len(t.Lines)-1].Bytes
	var args []kernels.Buffer
	for _, bytes := range []int64{most, most, 4 * collectiveColumns, most} {
		b, err := g.Alloc(bytes, kernels.Sharded)
		if err != nil {
			return withCode(exitDevice, err)
		}
		args = append(args, b)
	}
	noise := make([]byte, most)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32()) >> 2 & 0x3F // small positive values
	}
	if err := g.Upload(args[0], noise); err != nil {
		return withCode(exitDevice, err)
	}
	for i := range t.Lines {
		if err := context.Cause(ctx); err != nil {
			return withCode(exitInterrupted, fmt.Errorf("interrupted: %w", err))
		}
		l := &t.Lines[i]
		call := kernels.Call{Kernel: "all_reduce_norm", Dims: kernels.Dims{M: l.Rows, N: collectiveColumns,
			Ranks: int32(t.Ranks)}, Args: args, Scalars: [4]float32{1e-5}}
		if l.NS[string(way)], err = timeCollective(g,
			slices.Repeat([]kernels.Call{call}, callsOf(l.Bytes))); err != nil {
			return withCode(exitDevice, fmt.Errorf("%s, %s: %w", way, units.Bytes(l.Bytes), err))
		}
	}
	return nil
}

// timeCollective returns the ns of one of a list's calls.
func timeCollective(g *ranks.Group, list []kernels.Call) (int64, error) {
	spans := make([][]kernels.Span, g.Ranks())
	for r := range spans {
		spans[r] = make([]kernels.Span, len(list))
	}
	var all []int64
	for i := range collectiveRounds + 3 {
		if err := g.Run(list, spans); err != nil {
			return 0, err
		}
		var slowest int64
		for _, s := range spans { // from the end of the first call, for which ranks come together
			slowest = max(slowest, (s[len(s)-1].End-s[0].End)/int64(len(s)-1))
		}
		if i >= 3 {
			all = append(all, slowest)
		}
	}
	return bench.TimesOf(all).Median, nil
}

func (t *collectiveTimes) print(w io.Writer) error {
	var s strings.Builder
	report.Wrap(&s,
		fmt.Sprintf("sum over %d ranks, with residual and norm, on %s (%s): us a call, one after the other in a graph",
			t.Ranks, t.Device.Name, t.Device.Detail), report.DefaultWidth)
	s.WriteByte('\n')
	var ways []string
	for way := range t.Lines[0].NS {
		ways = append(ways, way)
	}
	slices.SortFunc(ways, func(a, b string) int {
		at := func(s string) int { return slices.Index(cuda.Collectives(), cuda.Collective(s)) }
		return cmp.Compare(at(a), at(b))
	})
	fmt.Fprintf(&s, "%6s%12s", "rows", "message")
	for _, way := range ways {
		fmt.Fprintf(&s, "%11s", way)
	}
	if t.NCCL != "" {
		fmt.Fprintf(&s, "%16s", "NCCL's own sum")
	}
	s.WriteByte('\n')
	for _, l := range t.Lines {
		fmt.Fprintf(&s, "%6d%12s", l.Rows, units.Bytes(l.Bytes))
		for _, way := range ways {
			fmt.Fprintf(&s, "%11.2f", float64(l.NS[way])/1e3)
		}
		if t.NCCL != "" {
			fmt.Fprintf(&s, "%16.2f", float64(l.NCCLSum)/1e3)
		}
		s.WriteByte('\n')
	}
	if t.NCCL != "" {
		s.WriteByte('\n')
		report.Wrap(&s, "NCCL's own sum: ncclAllReduce of version "+t.NCCL+
			", without residual and norm; it adds in an order of its own, so ranks do not use it", report.DefaultWidth)
	}
	for _, n := range t.Notes {
		report.Wrap(&s, n, report.DefaultWidth)
	}
	_, err := io.WriteString(w, s.String())
	return err
}
