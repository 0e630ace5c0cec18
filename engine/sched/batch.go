package sched

import "glmbatch/kernels"

// Item is a sequence's part of a step: its tokens [From, From+Count), and behind
// them the first of its drafts.
type Item struct {
	Seq    *Seq
	From   int
	Count  int
	Sample bool // the last of them is the sequence's last: its logits give the next token
	Drafts int  // rows behind those tokens: each says what follows if the drafts up to it are right
	Draft  bool // there is room for the prediction layer to go on from what the step samples
}

// decodes reports whether the item is one generated token.
func (i Item) decodes() bool { return i.Count == 1 && i.From >= i.Seq.Prompt && i.Sample }

// Batch is one step, in the order of Add. It is the scheduler's and valid until
// the next call of Next.
type Batch struct {
	Kind      string // kernels.Prefill, Decode or Mixed
	Items     []Item
	Tokens    int    // rows: the sum of the items' counts and drafts
	Drafts    int    // of them, drafts
	Moved     []*Seq // sequences whose Pages or Seat are new or longer than in the step before
	Copies    []Copy // in this order, before anything is computed
	Preempted int    // sequences that gave their pages back
	Pages     int    // in use
	Shared    int    // tokens of prompts of sequences that began here, which others had computed
}

// Copy makes the entries of a page those of another, in all layers: a sequence goes on
// from the middle of a page as another did.
type Copy struct{ From, To int32 }

func (b *Batch) reset() {
	*b = Batch{Items: b.Items[:0], Moved: b.Moved[:0], Copies: b.Copies[:0]}
}

func (b *Batch) add(i Item) {
	kind := kernels.Prefill
	if i.decodes() {
		kind = kernels.Decode
	}
	if len(b.Items) > 0 && b.Kind != kind {
		kind = kernels.Mixed
	}
	b.Kind = kind
	b.Items = append(b.Items, i)
	b.Tokens += i.Count + i.Drafts
	b.Drafts += i.Drafts
}
