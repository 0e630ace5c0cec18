package kernels

// MaxLogprobs is the most alternatives that a sampled token can carry.
const MaxLogprobs = 20

// SampleParams steer the choice of one token. The sample kernel reads an array
// of them, one a row of logits, in the machine's byte order. The definitions are
// those of vLLM 0.11's sampler.
//
// First the row's Mask: tokens outside it count as if the model gave them -Inf, in
// log-probabilities too, which are of these logits (vLLM's raw_logprobs; a grammar's
// mask comes before them there as here). What follows does not change them: tokens
// outside Allowed become -Inf; biases are added; repetition, frequency and presence
// penalties, in this order: a token seen has its logit divided by Repetition where it is
// positive, else multiplied; one that was generated c > 0 times loses c·Frequency and then
// Presence, each product and difference rounded to float32.
//
// The filters come next, in the order temperature, top-k, top-p, min-p;
// each keeps the best tokens of those before it, and top-p's share is of what
// top-k left. The draw is one number u in [0, 1) laid on the probabilities of
// the tokens that were kept, in the order of their ids. u is Philox4x32-10
// (Salmon et al., 2011) of Counter under the key Seed: the first two words of
// its output, the first the lower, give u's 53 leading bits.
//
// The zero value is no row that does nothing: see [Greedy].
type SampleParams struct {
	Temperature float32 // 0: the largest logit
	TopP        float32 // 1: off
	MinP        float32 // 0: off
	Repetition  float32 // 1: off
	TopK        int32   // 0: off
	Logprobs    int32   // alternatives wanted; -1: no log-probabilities at all, of labels neither
	Seen        int32   // row of the seen-token bitmaps, of whole 64-bit words each; -1: none
	Last        int32   // the token before this one; feed keeps it
	Seed        uint64  // with Counter, the key of the random number
	Counter     uint64  // position of the token in its sequence
	Presence    float32 // 0: off
	Frequency   float32 // 0: off
	Counts      int32   // row of the counts of generated tokens; -1: none
	Mask        int32   // row of the masks, bitmaps as those of tokens seen: bit set, token allowed; -1: none
	Allowed     int32   // likewise, but log-probabilities do not know it
	Entries     int32   // the row's first in the entries: its Biases, after them its Labels, then the Assumed
	Biases      int32
	Labels      int32 // with Logprobs no more than MaxLogprobs
	Forced      int32 // the token to report on, and none is chosen; -1: one is
	Assumed     int32 // at most MaxAssumed: each token counts as seen, and as generated once more than Counts says
}

// Greedy steers to the largest logit and asks for nothing else.
func Greedy() SampleParams {
	return SampleParams{TopP: 1, Repetition: 1, Logprobs: -1, Seen: -1, Counts: -1, Mask: -1, Allowed: -1, Forced: -1}
}

// Entry is what a row of logits has to do with one token: as a bias or, by its id
// alone, as a label, whose log-probability is reported whatever its rank, or as one that is
// assumed to have come, though bitmaps and counts do not know it.
type Entry struct {
	Token int32
	After int32   // the bias is for rows whose Last this is; -1: for all
	Bias  float32 // -Inf: the token is never chosen
}

// MaxEntries is the most entries that a row of logits can have.
const MaxEntries = 1024

// MaxAssumed is the most tokens that a row of logits assumes.
const MaxAssumed = 32

// MaxCount is where counts of generated tokens stop: they have 16 bits.
const MaxCount = 1<<16 - 1

// CountPitch is the bytes of a row of counts of n tokens.
func CountPitch(n int) int { return (n + 3) / 4 * 8 }

// Sampled is the sample kernel's output for one row.
type Sampled struct {
	Token   int32   // -1: no logit is a number above -Inf, and the rest is empty
	Logprob float32 // natural logarithm, of the distribution before temperature and cuts
	// the most likely tokens, best first, -1 in place of any at -Inf; then the labels; then -1
	IDs   [MaxLogprobs]int32
	Logps [MaxLogprobs]float32 // theirs
}
