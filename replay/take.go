package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// Step is a step that was computed, with what a capture takes from it. All of it
// is the engine's.
type Step struct {
	kernels.Trace
	Sequences int
	Batch     *glm5.Batch
}

var (
	errTooLarge      = errors.New("larger than a capture may be")
	errUnsteady      = errors.New("a second run of the step had another outcome")
	errCachesChanged = errors.New("the caches could not be restored")
)

// take captures the step that has just run. It leaves the caches as they are;
// an error that wraps errCachesChanged says that it could not.
func take(m *glm5.Model, s *Step, o *CaptureOptions) (*Capture, error) {
	c := begun(m, s, o)
	if o.Since != nil {
		now := o.Since(kernels.Epoch().Add(time.Duration(s.Times.Wall.Start)))
		c.Conditions = &now
	}
	for _, spans := range s.Spans {
		c.Spans = append(c.Spans, slices.Clone(spans))
	}
	for _, asides := range s.Asides {
		c.Asides = append(c.Asides, slices.Clone(asides))
	}
	if err := c.tables(m); err != nil {
		return nil, err
	}
	if n := c.estimate(m); n > o.MaxBytes {
		return nil, fmt.Errorf("%w: about %d bytes of %d (--capture-max-bytes)", errTooLarge, n, o.MaxBytes)
	}
	c.mapBuffers(m)
	if err := c.pages(m); err != nil {
		return nil, err
	}
	if o.KV != KVSeeded {
		return c, c.outcome(m, true)
	}
	own := c.Pages
	c.Pages = nil
	err := uploadPages(m, seeded(m, c.Seed, c.PageRuns))
	if err == nil {
		err = c.outcome(m, false)
	}
	if back := uploadPages(m, own); back != nil {
		return nil, fmt.Errorf("%w: %w", errCachesChanged, errors.Join(back, err))
	}
	return c, err
}

// begun is what is known of a step before it runs, without its page tables.
func begun(m *glm5.Model, s *Step, o *CaptureOptions) *Capture {
	c := &Capture{Header: Header{
		Step: s.Step, Kind: s.Kind, Sequences: s.Sequences, Model: o.Model, Hash: o.Hash, Device: m.Group().Info(),
		Ranks:    m.Group().Ranks(),
		Versions: o.Versions, Options: m.Options(), KV: o.KV, Detail: o.Detail,
		Times: s.Times,
	}}
	if o.KV == KVSeeded {
		c.Seed = uint64(s.Step)*0x9e3779b97f4a7c15 + 1
	}
	c.Calls = cloneCalls(s.Calls)
	b := s.Batch
	c.Batch = glm5.Batch{Tokens: slices.Clone(b.Tokens), Pos: slices.Clone(b.Pos), Seq: slices.Clone(b.Seq),
		Slots:  slices.Clone(b.Slots),
		Logits: slices.Clone(b.Logits), Params: slices.Clone(b.Params), Copies: slices.Clone(b.Copies),
		Masks: slices.Clone(b.Masks), Entries: slices.Clone(b.Entries),
		Next: slices.Clone(b.Next), Tips: slices.Clone(b.Tips), LongTips: b.LongTips, Drafts: b.Drafts}
	return c
}

// WriteBegun captures a step that is about to run, whose inputs the ranks have, for rows
// of the input: what it takes to run it again on cache entries made from a seed. The file
// is there when it returns. Of o it takes what says of which model and program it is.
func WriteBegun(path string, m *glm5.Model, s *Step, rows []int64, o CaptureOptions) error {
	o.KV, o.Detail = KVSeeded, DetailNone
	t := *s
	t.Step += o.FirstStep
	c := begun(m, &t, &o)
	c.Rows = rows
	if err := c.tables(m); err != nil {
		return err
	}
	c.mapBuffers(m)
	all, err := c.rows()
	if err != nil {
		return err
	}
	return datasets.PlaceCapture(path, all)
}

// tables reads the page tables and bitmaps of the batch's sequences.
func (c *Capture) tables(m *glm5.Model) error {
	g, b := m.Group(), &c.Batch
	most := map[int32]int32{}
	for i, s := range b.Seq {
		most[s] = max(most[s], b.Pos[i]/kernels.PageTokens+1)
	}
	for _, t := range b.Tips { // the prediction layer goes on from there
		last := b.Logits[t.First+t.Rows-1]
		most[b.Seq[last]] = max(most[b.Seq[last]], (b.Pos[last]+int32(b.Drafts)-1)/kernels.PageTokens+1)
	}
	table := m.Region(glm5.RegionPages, -1)
	pages := map[int32]bool{}
	for seat, n := range most {
		raw := make([]byte, 4*n)
		if err := g.Download(0, raw, table.Slice(int64(seat)*int64(table.Pitch), int64(len(raw)))); err != nil {
			return fmt.Errorf("page table of row %d: %w", seat, err)
		}
		t := Table{Seat: seat, Pages: ints(raw)}
		for _, p := range t.Pages {
			pages[p] = true
		}
		c.Tables = append(c.Tables, t)
	}
	slices.SortFunc(c.Tables, func(x, y Table) int { return cmp.Compare(x.Seat, y.Seat) })
	for _, p := range b.Copies {
		pages[p] = true
	}
	if err := c.steering(m); err != nil {
		return err
	}
	sorted := make([]int32, 0, len(pages))
	for p := range pages {
		sorted = append(sorted, p)
	}
	slices.Sort(sorted)
	c.PageRuns = runs(sorted)
	return nil
}

// steering reads the bitmaps and counts that the batch's rows of logits refer to.
func (c *Capture) steering(m *glm5.Model) error {
	row := func(region string, at int32) ([]byte, error) {
		b := m.Region(region, -1)
		raw := make([]byte, b.Pitch)
		if err := m.Group().Download(0, raw, b.Slice(int64(at)*int64(b.Pitch), int64(b.Pitch))); err != nil {
			return nil, fmt.Errorf("%s of row %d: %w", region, at, err)
		}
		return raw, nil
	}
	type table struct {
		region string
		row    int32
	}
	first, taken := m.AllowedRow(0), map[table]bool{}
	var err error
	read := func(region string, at int32) []byte {
		if at < 0 || err != nil || taken[table{region, at}] { // rows of drafts have the same
			return nil
		}
		taken[table{region, at}] = true
		var raw []byte
		raw, err = row(region, at)
		return raw
	}
	for _, p := range c.Batch.Params {
		if raw := read(glm5.RegionSeen, p.Seen); raw != nil {
			c.Seen = append(c.Seen, Seen{p.Seen, words(raw)})
		}
		if raw := read(glm5.RegionMasks, p.Allowed); raw != nil {
			c.Allowed = append(c.Allowed, Seen{p.Allowed - first, words(raw)})
		}
		if raw := read(glm5.RegionCounts, p.Counts); raw != nil {
			c.Counts = append(c.Counts, Generated{p.Counts, shorts(raw)})
		}
	}
	return err
}

// runs groups ascending page numbers.
func runs(pages []int32) []PageRun {
	var rs []PageRun
	for _, p := range pages {
		if n := len(rs); n > 0 && rs[n-1].First+rs[n-1].Count == p {
			rs[n-1].Count++
			continue
		}
		rs = append(rs, PageRun{p, 1})
	}
	return rs
}

// caches lists the model's caches with the bytes of a page.
func caches(m *glm5.Model) []cacheOf {
	c, f := &m.Config, m.Options().KVCache
	var all []cacheOf
	for _, r := range m.Memory() {
		switch r.Name {
		case glm5.RegionLatent:
			all = append(all, cacheOf{r, kernels.PageTokens * int64(kernels.LatentEntry(f, c.KVLoRA, c.QKRope))})
		case glm5.RegionIndex:
			all = append(all, cacheOf{r, kernels.PageTokens * int64(kernels.IndexEntry(f, c.IndexHeadDim))})
		}
	}
	return all
}

type cacheOf struct {
	glm5.Region
	page int64 // bytes
}

func (k *cacheOf) run(r PageRun) kernels.Buffer {
	return k.Buffer.Slice(int64(r.First)*k.page, int64(r.Count)*k.page)
}

// estimate is about how large the capture's file will be.
func (c *Capture) estimate(m *glm5.Model) int64 {
	var pages, n int64
	for _, r := range c.PageRuns {
		pages += int64(r.Count)
	}
	for _, k := range caches(m) {
		n += pages * k.page
	}
	if c.KV == KVSeeded {
		n = 0
	}
	stop := stops(c.Calls, c.Detail)
	for i := range c.Calls {
		x := &c.Calls[i]
		n += 400 // the row of a call
		if k := kernels.Lookup(x.Kernel); stop(i) && c.Detail != DetailHash {
			copies := int64(c.Ranks)
			if x.Replicated {
				copies = 1
			}
			for _, a := range k.Args {
				if (a.Role == kernels.Out || a.Role == kernels.InOut) && a.Len != nil {
					n += copies * 4 * a.Len(x.Dims)
				}
			}
		}
	}
	n += int64(len(c.Spans)) * int64(len(c.Calls)) * 300
	return n + int64(len(c.Batch.Tokens))*16 + int64(len(c.Batch.Params))*(paramBytes+sampledBytes+4) +
		int64((len(c.Seen)+len(c.Allowed))*8*m.SeenWords()) +
		int64(len(c.Batch.Masks)*8+len(c.Batch.Entries)*entryBytes) + c.countBytes() + 4096
}

func (c *Capture) countBytes() (n int64) {
	for i := range c.Counts {
		n += 2 * int64(len(c.Counts[i].Values))
	}
	return n
}

// mapBuffers names all buffers that the calls use: the model's regions, and
// weights by the argument that reads them.
func (c *Capture) mapBuffers(m *glm5.Model) {
	known := map[uint32]bool{}
	add := func(b Buffer) {
		if !known[b.Index] {
			known[b.Index] = true
			c.Buffers = append(c.Buffers, b)
		}
	}
	inputs := int64(0)
	for _, r := range m.Memory() {
		if r.Buffer.Index == m.Region("tokens", -1).Index { // views of one upload
			inputs = max(inputs, r.Buffer.Offset+r.Buffer.Len)
			continue
		}
		add(Buffer{r.Buffer.Index, r.Name, r.Layer, r.Buffer.Len})
	}
	add(Buffer{m.Region("tokens", -1).Index, "inputs", -1, inputs})
	for i := range c.Calls {
		x := &c.Calls[i]
		for j, a := range kernels.Lookup(x.Kernel).Args {
			if b := x.Args[j]; b.Index != 0 {
				add(Buffer{b.Index, a.Name + " of " + string(x.Kernel), int(x.Layer), b.Offset + b.Len})
			}
		}
	}
	slices.SortFunc(c.Buffers, func(x, y Buffer) int { return cmp.Compare(x.Index, y.Index) })
}

// pages downloads the batch's pages of every cache.
func (c *Capture) pages(m *glm5.Model) error {
	for _, k := range caches(m) {
		for _, r := range c.PageRuns {
			data := make([]byte, int64(r.Count)*k.page)
			if err := m.Group().Download(0, data, k.run(r)); err != nil {
				return fmt.Errorf("%s of layer %d: %w", k.Name, k.Layer, err)
			}
			c.Pages = append(c.Pages, Pages{k.Name, k.Layer, r, data})
		}
	}
	return nil
}

// uploadPages takes pages to all ranks.
func uploadPages(m *glm5.Model, pages []Pages) error {
	all := caches(m)
	for i := range pages {
		p := &pages[i]
		at := slices.IndexFunc(all, func(k cacheOf) bool { return k.Name == p.Cache && k.Layer == p.Layer })
		if at < 0 {
			return fmt.Errorf("the model has no %s of layer %d", p.Cache, p.Layer)
		}
		k := &all[at]
		if p.Run.First < 0 || p.Run.Count < 1 || (int64(p.Run.First)+int64(p.Run.Count))*k.page > k.Buffer.Len ||
			int64(p.Run.Count)*k.page != int64(len(p.Data)) {
			return fmt.Errorf("pages %d to %d of %s, layer %d, in %d bytes do not fit the model's cache", p.Run.First,
				p.Run.First+p.Run.Count-1, p.Cache, p.Layer, len(p.Data))
		}
		if err := m.Group().Upload(k.run(p.Run), p.Data); err != nil {
			return fmt.Errorf("%s of layer %d: %w", p.Cache, p.Layer, err)
		}
	}
	return nil
}

// outcome runs the step again and reads what it leaves. same: it must be what
// the step itself left.
func (c *Capture) outcome(m *glm5.Model, same bool) error {
	r := newReader(m, c.Calls, &c.Batch)
	var before []Output
	if same {
		for _, i := range left(c.Calls) {
			out, err := r.outputs(i)
			if err != nil {
				return err
			}
			before = append(before, out...)
		}
	}
	ends := last(c.Calls)
	err := r.walk(stops(c.Calls, c.Detail), func(out []Output) error {
		for _, o := range out {
			choice := chooses(c.Calls[o.Call].Kernel)
			end := slices.Contains(ends, o.Call)
			if !choice && (c.Detail == DetailHash && !end || end && len(o.Data) > maxLogits && c.Detail != DetailData) {
				o.Data = nil
			}
			if choice {
				c.Selections = append(c.Selections, o)
				continue
			}
			c.Outputs = append(c.Outputs, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range before {
		for _, o := range c.Outputs {
			if o.Call == b.Call && o.Arg == b.Arg && o.Rank == b.Rank && !bytes.Equal(o.Hash, b.Hash) {
				return fmt.Errorf("%w: %s", errUnsteady, o.what(c.Calls))
			}
		}
	}
	return nil
}
