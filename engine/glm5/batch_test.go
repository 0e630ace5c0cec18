package glm5

import (
	"testing"

	"glmbatch/kernels"
)

// A batch follows another when the ranks can make its inputs of the other's.
func TestFollows(t *testing.T) {
	base := func() *Batch {
		b := &Batch{}
		for i := range int32(3) {
			b.Logits = append(b.Logits, b.Add(9, 100+i, 2-i, 0))
			b.Params = append(b.Params, kernels.SampleParams{Temperature: .5, Seed: 7, Counter: uint64(101 + i)})
			b.From = append(b.From, i)
		}
		return b
	}
	next := func() *Batch {
		b := base()
		for i := range b.Pos {
			b.Tokens[i], b.Slots[i] = 0, 5
			b.Pos[i]++
			b.Params[i].Counter++
		}
		return b
	}
	for _, c := range []struct {
		name string
		want bool
		edit func(b, o *Batch)
	}{
		{"one token on", true, func(b, o *Batch) {}},
		{"tokens that the host knows", false, func(b, o *Batch) { b.From = nil }},
		{"one token that the host knows", false, func(b, o *Batch) { b.From[1], o.From[1] = -1, -1 }},
		{"rows that have moved", false, func(b, o *Batch) { o.From[0], o.From[1] = 1, 0 }},
		{"another sequence", false, func(b, o *Batch) { b.Seq[2] = 4 }},
		{"another position", false, func(b, o *Batch) { b.Pos[0]++ }},
		{"other parameters", false, func(b, o *Batch) { b.Params[0].TopP = .5 }},
		{"another token before", true, func(b, o *Batch) { b.Params[0].Last = 5 }},
		{"other entries", false, func(b, o *Batch) { b.Entries = []kernels.Entry{{Token: 3, After: -1}} }},
		{"the same entries", true, func(b, o *Batch) {
			b.Entries = []kernels.Entry{{Token: 3, After: -1}}
			o.Entries = []kernels.Entry{{Token: 3, After: -1}}
		}},
		{"masks", false, func(b, o *Batch) { b.Masks, o.Masks = make([]uint64, 4), make([]uint64, 4) }},
		{"one row fewer", false, func(b, o *Batch) {
			b.Tokens, b.Pos, b.Seq, b.Slots = b.Tokens[:2], b.Pos[:2], b.Seq[:2], b.Slots[:2]
			b.Logits, b.Params, b.From = b.Logits[:2], b.Params[:2], b.From[:2]
		}},
		{"a row without logits", false, func(b, o *Batch) { b.Add(1, 2, 3, 4) }},
		{"nothing before", false, func(b, o *Batch) { o.Reset() }},
	} {
		b, o := next(), base()
		c.edit(b, o)
		if got := b.follows(o); got != c.want {
			t.Errorf("%s: follows is %v", c.name, got)
		}
	}
	if b := (&Batch{}); b.follows(b) {
		t.Error("an empty batch follows")
	}
}

func TestScoreWidth(t *testing.T) {
	o := Options{Context: 131_000}
	last := int32(0)
	for ctx := int32(1); ctx <= 131_000; ctx++ {
		w := o.scoreWidth(ctx)
		if w < ctx || w < last || w%kernels.PageTokens != 0 || w > 131_008 ||
			w > max(ctx+ctx/8, ctx+kernels.PageTokens) {
			t.Fatalf("a context of %d has scores %d wide, the one before %d", ctx, w, last)
		}
		last = w
	}
}

// Slots that sequences share are read once, in each block of rows.
func TestMeasureCountsSharedSlotsOnce(t *testing.T) {
	b := &Batch{}
	b.Share(3, []int32{7, 8})
	b.Share(4, []int32{7, 8})
	b.Share(5, []int32{7})
	b.Add(0, 199, 3, 0)
	b.Add(0, 130, 4, 0)
	b.Add(0, 63, 5, 0)
	b.Add(0, 64, 5, 0)
	b.Add(0, 99, 6, 0)
	for range 2 {
		if k := b.measure(0, 5, 1000); k.slots != 200+(131-128)+(65-64)+100 || k.ctx != 200+131+64+65+100 ||
			k.selected != k.slots {
			t.Errorf("%+v", k)
		}
		if k := b.measure(1, 5, 10); k.slots != 131+1+100 || k.selected != 10+20+10 {
			t.Errorf("%+v", k)
		}
	}
	b.Reset()
	b.Add(0, 199, 3, 0)
	b.Add(0, 130, 4, 0)
	if k := b.measure(0, 2, 1000); k.slots != 331 {
		t.Errorf("%+v", k)
	}
}
