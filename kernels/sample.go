package kernels

// MaxLogprobs is the most alternatives that a sampled token can carry.
const MaxLogprobs = 20

// SampleParams steer the choice of one token. The sample kernel reads an array
// of them, one a row of logits, in the machine's byte order.
//
// The filters come in the order repetition, temperature, top-k, top-p, min-p;
// each keeps the best tokens of those before it, and top-p's share is of what
// top-k left. The draw is one number u in [0, 1) laid on the probabilities of
// the tokens that were kept, in the order of their ids. u is Philox4x32-10
// (Salmon et al., 2011) of Counter under the key Seed: the first two words of
// its output, the first the lower, give u's 53 leading bits.
type SampleParams struct {
	Temperature float32 // 0: the largest logit
	TopP        float32 // 1: off
	MinP        float32 // 0: off
	Repetition  float32 // 1: off; divides positive and multiplies negative logits of tokens seen
	TopK        int32   // 0: off
	Logprobs    int32   // alternatives wanted; -1: not even the token's own
	Seen        int32   // row of the seen-token bitmaps, of whole 64-bit words each; -1: none
	_           int32
	Seed        uint64 // with Counter, the key of the random number
	Counter     uint64 // position of the token in its sequence
}

// Sampled is the sample kernel's output for one row.
type Sampled struct {
	Token   int32                // -1: no logit is a number above -Inf, and the rest is empty
	Logprob float32              // natural logarithm, of the distribution before temperature and cuts
	IDs     [MaxLogprobs]int32   // the most likely tokens, best first; -1 where fewer were wanted
	Logps   [MaxLogprobs]float32 // theirs
}
