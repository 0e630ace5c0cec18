package replay

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// errUnfit marks captures that do not fit the model they are run on.
var errUnfit = errors.New("the capture does not fit the model")

// restored is a captured step on a model, ready to run.
type restored struct {
	c     *Capture
	m     *glm5.Model
	batch glm5.Batch // with the pages that it has here
	calls []kernels.Call
	runs  []PageRun // of the batch's pages here

	sampled []kernels.Sampled
	stop    func() error // nil: never
}

// restore takes a capture's inputs and cache entries to a model, which may have
// other caches, pages or ranks than the one that was captured. compact moves the
// batch's pages to the front of the caches.
func restore(c *Capture, m *glm5.Model, compact bool) (*restored, error) {
	s := &restored{c: c, m: m, batch: c.Batch}
	s.batch.Slots = slices.Clone(c.Batch.Slots)
	s.batch.Params = slices.Clone(c.Batch.Params)
	s.batch.Copies = slices.Clone(c.Batch.Copies)
	s.batch.Tips = slices.Clone(c.Batch.Tips)
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	tables, pages, err := s.place(compact)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	if from, to := c.Options.KVCache, m.Options().KVCache; from != to {
		if pages, err = converted(m, pages, from, to); err != nil {
			return nil, err
		}
	}
	if err := uploadPages(m, pages); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	for _, t := range tables {
		if err := m.SetPages(int(t.Seat), t.Pages); err != nil {
			return nil, err
		}
	}
	for _, x := range c.Seen {
		if err := m.SetSeen(int(x.Seat), 0, x.Words); err != nil {
			return nil, err
		}
	}
	for _, x := range c.Allowed {
		if err := m.SetAllowed(int(x.Seat), x.Words); err != nil {
			return nil, err
		}
	}
	for _, x := range c.Counts {
		if err := m.SetCounts(int(x.Seat), 0, x.Values); err != nil {
			return nil, err
		}
	}
	if err := m.Upload(&s.batch); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	s.calls = cloneCalls(m.Program(&s.batch))
	s.sampled = make([]kernels.Sampled, s.batch.Samples())
	return s, nil
}

// check reports what of the tables does not fit the model; Upload checks the rows.
func (s *restored) check() error {
	o := s.m.Options()
	var errs []error
	fault := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	have := map[int32]Table{}
	most := (o.Context + kernels.PageTokens - 1) / kernels.PageTokens // pages of a sequence
	for _, t := range s.c.Tables {
		if t.Seat < 0 || int(t.Seat) >= o.MaxSeqs || len(t.Pages) == 0 || len(t.Pages) > most {
			fault("page table %d of %d pages: the model has %d tables of a context of %d", t.Seat, len(t.Pages),
				o.MaxSeqs, o.Context)
		}
		have[t.Seat] = t
	}
	b := &s.batch
	for i := range min(len(b.Seq), len(b.Pos), len(b.Slots)) {
		t, pos := have[b.Seq[i]], b.Pos[i]
		at := int(pos) / kernels.PageTokens
		fits := pos >= 0 && at < len(t.Pages)
		if fits {
			slot := t.Pages[at]*kernels.PageTokens + pos%kernels.PageTokens
			fits = b.Slots[i] == slot
		}
		if !fits {
			fault("row %d: slot %d is not that of position %d of sequence %d", i, b.Slots[i], b.Pos[i], b.Seq[i])
			break
		}
	}
	for i, r := range b.Logits {
		if r < 0 || int(r) >= len(b.Tokens) {
			fault("row %d of logits is row %d of %d", i, r, len(b.Tokens))
			break
		}
	}
	bitmaps := func(name string, list []Seen) map[int32]bool {
		rows := map[int32]bool{}
		for _, x := range list {
			if x.Seat < 0 || int(x.Seat) >= o.MaxSeqs || len(x.Words) != s.m.SeenWords() {
				fault("tokens %s %d in %d words: the model has %d of %d words", name, x.Seat, len(x.Words), o.MaxSeqs,
					s.m.SeenWords())
			}
			rows[x.Seat] = true
		}
		return rows
	}
	seen, allowed, counts := bitmaps("seen", s.c.Seen), bitmaps("allowed", s.c.Allowed), map[int32]bool{}
	for _, x := range s.c.Counts {
		if x.Seat < 0 || int(x.Seat) >= o.MaxSeqs || len(x.Values)*2 != kernels.CountPitch(s.m.Config.Vocab) {
			fault("counts %d of %d tokens: the model has %d of %d", x.Seat, len(x.Values), o.MaxSeqs, s.m.Config.Vocab)
		}
		counts[x.Seat] = true
	}
	// The tokens that a sequence may have lie behind the step's own masks here.
	moved := s.m.AllowedRow(0) - int32(cmp.Or(s.c.Options.MaxLogits, s.c.Options.MaxSeqs))
	for i := range b.Params {
		if p := &b.Params[i]; p.Allowed >= 0 {
			p.Allowed += moved
			if !allowed[p.Allowed-s.m.AllowedRow(0)] {
				fault("parameters %d: tokens allowed %d", i, p.Allowed)
			}
		}
	}
	for i, p := range b.Params {
		if p.Seen >= 0 && !seen[p.Seen] || p.Counts >= 0 && !counts[p.Counts] || p.Presence != p.Presence ||
			p.Frequency != p.Frequency || p.Logprobs > kernels.MaxLogprobs || p.Temperature != p.Temperature ||
			p.TopP != p.TopP || p.MinP != p.MinP || p.Repetition != p.Repetition || p.Repetition == 0 {
			fault("parameters %d: %+v", i, p)
			break
		}
	}
	return errors.Join(errs...)
}

// place returns the tables and the entries with the pages that they have here.
func (s *restored) place(compact bool) ([]Table, []Pages, error) {
	c := s.c
	here := map[int32]int32{} // captured page: page here
	next, room := int32(0), int64(s.m.Options().Pages)
	for _, r := range c.PageRuns {
		end, taken := int64(r.First)+int64(r.Count), int64(next)+int64(r.Count)
		if r.First < 0 || r.Count < 1 || end > math.MaxInt32 || taken > room {
			return nil, nil, fmt.Errorf("pages %d and %d after it do not fit %d pages", r.First, r.Count-1, room)
		}
		to := r.First
		if compact {
			to = next
		}
		if int64(to)+int64(r.Count) > room {
			return nil, nil, fmt.Errorf("page %d is not one of %d", to+r.Count-1, room)
		}
		for i := range r.Count {
			here[r.First+i] = to + i
		}
		next += r.Count
		s.runs = append(s.runs, PageRun{to, r.Count})
	}
	if compact {
		s.runs = []PageRun{{0, next}}
	}
	var tables []Table
	for _, t := range c.Tables {
		u := Table{t.Seat, make([]int32, len(t.Pages))}
		for i, p := range t.Pages {
			q, ok := here[p]
			if !ok {
				return nil, nil, fmt.Errorf("page %d of sequence %d is not among the capture's pages", p, t.Seat)
			}
			u.Pages[i] = q
		}
		tables = append(tables, u)
	}
	s.share(tables)
	for i, p := range s.batch.Copies {
		q, ok := here[p]
		if !ok {
			return nil, nil, fmt.Errorf("page %d, which is copied, is not among the capture's pages", p)
		}
		s.batch.Copies[i] = q
	}
	for i, slot := range s.batch.Slots {
		s.batch.Slots[i] = here[slot/kernels.PageTokens]*kernels.PageTokens + slot%kernels.PageTokens
	}
	pages := c.Pages
	if c.KV == KVSeeded {
		if c.Options.KVCache != s.m.Options().KVCache {
			return nil, nil, fmt.Errorf("seeded entries are those of a cache in %s only", c.Options.KVCache)
		}
		pages = seeded(s.m, c.Seed, c.PageRuns)
	}
	moved := slices.Clone(pages)
	for i := range moved {
		to, ok := here[moved[i].Run.First]
		if !ok {
			return nil, nil, fmt.Errorf("%s: page %d of layer %d is in no page table", moved[i].Cache,
				moved[i].Run.First, moved[i].Layer)
		}
		moved[i].Run.First = to
	}
	return tables, moved, nil
}

// share says which pages several sequences have.
func (s *restored) share(tables []Table) {
	owners := map[int32]int{}
	for _, t := range tables {
		for _, p := range t.Pages {
			owners[p]++
		}
	}
	for _, t := range tables {
		n := 0
		for n < len(t.Pages) && owners[t.Pages[n]] > 1 {
			n++
		}
		if n > 0 {
			s.batch.Share(t.Seat, t.Pages[:n])
		}
	}
}

// sameProgram reports how the calls here differ from the captured ones. Sizes of
// caches may differ: they follow from the pool.
func (s *restored) sameProgram() error {
	if len(s.calls) != len(s.c.Calls) {
		return fmt.Errorf("the program has %d calls, the capture %d", len(s.calls), len(s.c.Calls))
	}
	for i := range s.calls {
		a, b := &s.c.Calls[i], &s.calls[i]
		same := a.Kernel == b.Kernel && a.Layer == b.Layer && a.Replicated == b.Replicated && a.Dims == b.Dims &&
			a.Scalars == b.Scalars &&
			slices.EqualFunc(a.Args, b.Args, func(x, y kernels.Buffer) bool {
				return x.Index == y.Index && x.Pitch == y.Pitch && x.Offset == y.Offset
			})
		if !same {
			return fmt.Errorf("call %d is %s of layer %d, captured was %s of layer %d, with dimensions %v, captured %v, "+
				"or its arguments differ", i, b.Kernel, b.Layer, a.Kernel, a.Layer, b.Dims, a.Dims)
		}
	}
	return nil
}

// fetch reads the tokens that are on the device.
func (s *restored) fetch() ([]int32, error) {
	if err := s.m.Sampled(s.sampled); err != nil {
		return nil, err
	}
	return s.tokens(), nil
}

// tokens are the tokens of the last run that fetched them.
func (s *restored) tokens() []int32 {
	var t []int32
	for i := range s.sampled {
		t = append(t, s.sampled[i].Token)
	}
	return t
}
