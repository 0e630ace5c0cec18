package glm5

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// Model is a checkpoint on a group of ranks, with caches and the memory that
// steps work in. It is for one goroutine.
type Model struct {
	Config Config

	o       Options
	g       *ranks.Group
	w       *loaded
	cache   *cache
	buf     arena
	program [kernels.MaxAhead]program // take turns
	made    int                       // programs
	inputs  [][]byte                  // the host's copy of buf.inputs: of each rank that has rows of its own
	sent    Batch                     // what the ranks' inputs are of
	cuts    [2]cut                    // of sent, and of the batch before or to come; take turns

	rounding []Rounding

	// What the program needs at every call.
	ranks, shards, heads int32 // heads of a rank
	homes                int   // ranks that have rows of their own; 1: none has
	apart                bool  // they have
	softmaxScale         float32
	index                [4]float32 // what index_logits is asked for
	routing              [4]float32
	exact                float32 // how products take their inputs: kernels.ExactInputs, kernels.RoundedInputs or 0
	names                struct{ latentWrite, indexWrite, indexLogits, attend kernels.Name }
}

// Load reads a checkpoint's config and weights and takes each rank's share to
// it. The group stays the caller's, who closes it after the model's last step;
// the checkpoint may be closed when Load returns. When ctx ends, Load ends with its
// error before the next layer.
func Load(ctx context.Context, ck *checkpoint.Checkpoint, g *ranks.Group, o Options) (*Model, error) {
	c, err := ParseConfig(ck.Config())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ck.Name, err)
	}
	c.Untie(ck)
	if o.Shards == 0 {
		o.Shards = g.Ranks()
	}
	if err := c.CheckTP(o.Shards); err != nil {
		return nil, fmt.Errorf("%s: %w", ck.Name, err)
	}
	if o.Shards < g.Ranks() {
		return nil, fmt.Errorf("%s: weights in %d parts for %d ranks", ck.Name, o.Shards, g.Ranks())
	}
	if err := o.Validate(&c); err != nil {
		return nil, fmt.Errorf("%s: model options: %w", ck.Name, err)
	}
	o = o.withDefaults(&c)
	c.LatentEps = o.LatentEps
	if err := c.Check(ck, o); err != nil {
		return nil, fmt.Errorf("%s: %w", ck.Name, err)
	}
	m := &Model{Config: c, o: o, g: g}
	m.prepare(g.Ranks())
	l := &loader{c: &m.Config, ck: ck, g: g, act: o.Act, dense: o.Dense, exact: o.wide(), shards: o.Shards,
		layout: o.Layout}
	if m.w, err = l.weights(ctx, o); err != nil {
		return nil, fmt.Errorf("%s: %w", ck.Name, err)
	}
	m.rounding = l.rounded.sum()
	if m.cache, err = newCache(&c, o, g.Alloc); err != nil {
		return nil, err
	}
	for i := range m.w.layers {
		d := &m.w.layers[i]
		d.latentCache = m.cache.latent[i]
		if d.index != nil {
			d.index.cache = m.cache.index[i]
		}
	}
	a, err := newArena(&c, o, g.Alloc)
	if err != nil {
		return nil, err
	}
	m.buf = *a
	if o.Drafts > 0 {
		order := make([]int32, o.MaxSeqs)
		for i := range order {
			order[i] = int32(i)
		}
		if err := g.Upload(m.buf.ahead.order, bytesOf(order)); err != nil {
			return nil, err
		}
	}
	for range m.homes {
		m.inputs = append(m.inputs, make([]byte, a.inputs.Len))
	}
	if m.apart { // the pages of places without a row
		nobody := a.pages.Slice(int64(o.MaxSeqs)*int64(a.pages.Pitch), 4)
		if err := g.Upload(nobody, bytesOf([]int32{int32(o.Pages)})); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// prepare works out what the program needs at every call.
func (m *Model) prepare(ranks int) {
	c := &m.Config
	m.ranks, m.shards = int32(ranks), int32(m.o.Shards)
	m.heads, m.homes, m.apart = int32(m.o.heads(c)), 1, m.o.Apart()
	if m.apart {
		m.homes = ranks
	}
	m.softmaxScale, m.index = float32(c.SoftmaxScale()), [4]float32{float32(c.IndexScale())}
	m.routing = [4]float32{c.RoutedScale, float32(c.Groups), float32(c.TopKGroups), 0}
	if c.NormTopK {
		m.routing[3] = 1
	}
	f := m.o.KVCache
	switch {
	case m.o.exact():
		m.exact = kernels.ExactInputs
	case m.o.rounds():
		m.exact, m.index[1] = kernels.RoundedInputs, 1
	}
	m.names.latentWrite, m.names.indexWrite = kernels.With("latent_write", f), kernels.With("index_write", f)
	m.names.indexLogits, m.names.attend = kernels.With("index_logits", f), kernels.With("mla_attend", f)
}

// Options returns the options in force.
func (m *Model) Options() Options { return m.o }

// Rounding returns what Options.Dense has cost, a part of the model each.
func (m *Model) Rounding() []Rounding { return m.rounding }

// Homes is how many ranks have sequences of their own; 1: all ranks have the same.
func (m *Model) Homes() int { return m.homes }

// Group returns the ranks that the model is on.
func (m *Model) Group() *ranks.Group { return m.g }

// Upload takes the batch's contents to the ranks, if they cannot make them of
// those of the batch before.
func (m *Model) Upload(b *Batch) error {
	was, is := &m.cuts[0], &m.cuts[1]
	m.cut(b, is)
	if err := m.check(b, is); err != nil {
		return err
	}
	known := b.follows(&m.sent) && (!m.apart || slices.Equal(was.shares, is.shares))
	same := slices.Equal(b.Entries, m.sent.Entries)
	m.sent.copyOf(b)
	m.cuts[0], m.cuts[1] = *is, *was
	if known {
		return nil
	}
	if err := m.uploadSteering(b, same); err != nil {
		return err
	}
	for rank, in := range m.inputs {
		m.fill(in, rank, b, &m.cuts[0], &m.cuts[1])
	}
	if err := m.g.UploadEach(m.buf.inputs, m.inputs); err != nil {
		return fmt.Errorf("uploading a step's inputs: %w", err)
	}
	return nil
}

// uploadSteering takes the step's masks to the ranks, and its entries if they are not
// the same as those that are there.
func (m *Model) uploadSteering(b *Batch, same bool) error {
	if !b.Open {
		if err := m.uploadMasks(b); err != nil {
			return err
		}
	}
	if n := int64(len(b.Entries) * entryBytes); n > 0 && !same {
		if err := m.g.Upload(m.buf.entries.Slice(0, n), bytesOf(b.Entries)); err != nil {
			return fmt.Errorf("uploading a step's entries: %w", err)
		}
	}
	return nil
}

func (m *Model) uploadMasks(b *Batch) error {
	if n := int64(len(b.Masks) * 8); n > 0 {
		if err := m.g.Upload(m.buf.masks.Slice(0, n), bytesOf(b.Masks)); err != nil {
			return fmt.Errorf("uploading a step's masks: %w", err)
		}
	}
	return nil
}

// choice is the call of a program that chooses tokens.
func choice(calls []kernels.Call) int {
	return slices.IndexFunc(calls, func(c kernels.Call) bool { return c.Kernel == "sample" })
}

// StartOpen starts a program whose batch is open: all of it up to the choice of tokens,
// which waits for Choose. Both are waited for.
func (m *Model) StartOpen(calls []kernels.Call, spans [][]kernels.Span) error {
	n := choice(calls)
	return m.g.Start(calls[:n], within(spans, 0, n))
}

// Choose takes the batch's masks to the ranks and starts the rest of its program, whose
// tokens are in dst once it was waited for. No other program may have begun meanwhile.
func (m *Model) Choose(b *Batch, calls []kernels.Call, spans [][]kernels.Span, dst []kernels.Sampled) error {
	if err := m.uploadMasks(b); err != nil {
		return err
	}
	n := choice(calls)
	return m.Start(calls[n:], within(spans, n, len(calls)), dst)
}

// within is some of the spans of each rank.
func within(spans [][]kernels.Span, from, to int) [][]kernels.Span {
	if spans == nil {
		return nil
	}
	some := make([][]kernels.Span, len(spans))
	for r, s := range spans {
		some[r] = s[from:to]
	}
	return some
}

// SetPages says which pages the sequence of a row of the page table has.
func (m *Model) SetPages(row int, pages []int32) error {
	if len(pages) == 0 {
		return nil
	}
	return m.uploadRow(row, m.buf.pages, 0, 0, bytesOf(pages))
}

// uploadRow takes bytes of the sequence of a row to a table, to the rank that has it: its row
// there from a row on, and a place in it.
func (m *Model) uploadRow(row int, table kernels.Buffer, first int, at int64, b []byte) error {
	to := table.Slice(int64(first+row%m.o.MaxSeqs)*int64(table.Pitch)+at, int64(len(b)))
	if m.apart {
		return m.g.UploadTo(row/m.o.MaxSeqs, to, b)
	}
	return m.g.Upload(to, b)
}

// SetSeen says which tokens the sequence of a row has had, in words from the
// first on of a bitmap that is SeenWords long: token t is bit t%64 of word t/64.
func (m *Model) SetSeen(row, first int, words []uint64) error {
	return m.uploadRow(row, m.buf.seen, 0, int64(first)*8, bytesOf(words))
}

// SetCounts says how often the sequence of a row has generated tokens, for those from
// the first on.
func (m *Model) SetCounts(row, first int, counts []uint16) error {
	return m.uploadRow(row, m.buf.counts, 0, int64(first)*2, bytesOf(counts))
}

// SetAllowed says which tokens the sequence of a row may have, in SeenWords words. Its
// rows of logits have AllowedRow as their Allowed.
func (m *Model) SetAllowed(row int, words []uint64) error {
	return m.uploadRow(row, m.buf.masks, int(m.AllowedRow(0)), 0, bytesOf(words))
}

// AllowedRow is where the masks have the tokens that the sequence of a row may have.
func (m *Model) AllowedRow(row int) int32 { return int32(m.o.MaxLogits*m.o.Homes() + row) }

// SeenWords is the length of a bitmap of tokens seen.
func (m *Model) SeenWords() int { return m.Config.seenBytes() / 8 }

// Start starts a program whose batch was uploaded. The tokens of its rows of
// logits are in dst once it was waited for. spans is nil, or has one slice a rank.
func (m *Model) Start(calls []kernels.Call, spans [][]kernels.Span, dst []kernels.Sampled) error {
	return m.g.Start(calls, spans, m.fetches(dst)...)
}

// fetches are what the ranks bring of the tokens of the batch that was uploaded last.
func (m *Model) fetches(dst []kernels.Sampled) []kernels.Fetch {
	if m.homes == 1 || len(dst) == 0 {
		return []kernels.Fetch{{From: m.buf.sampled, To: bytesOf(dst)}}
	}
	var fs []kernels.Fetch
	for _, s := range m.cuts[0].shares {
		fs = append(fs, kernels.Fetch{From: m.buf.sampled, To: bytesOf(dst[s.logits:s.last])})
	}
	return fs
}

// Sampled fetches the tokens of the last program's rows of logits into dst.
func (m *Model) Sampled(dst []kernels.Sampled) error {
	if len(dst) == 0 {
		return nil
	}
	for rank, f := range m.fetches(dst) {
		if err := m.g.Download(rank, f.To, f.From); err != nil {
			return fmt.Errorf("fetching sampled tokens: %w", err)
		}
	}
	return nil
}

// bytesOf returns the memory of values without pointers.
func bytesOf[T int32 | uint16 | uint64 | float32 | Tip | kernels.SampleParams | kernels.Entry | kernels.Sampled](
	v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}
