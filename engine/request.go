package engine

// Request is one sequence to generate: token ids in, token ids out. The engine
// never sees text.
type Request struct {
	ID       int64   // the caller's; unique among requests in flight
	Prompt   []int32 // at least one token; it must stay as it is until the request has ended
	Sampling Sampling
	Guide    Guide // of this request alone; nil: any token may come
}

// Sampling steers one request. The zero value is greedy and unbounded but for
// the context. As JSON, fields that were added later are left out where they ask for
// nothing: hashes of it stay what they were. What the fields mean to a row of logits: see kernels.SampleParams.
type Sampling struct {
	Temperature float32 // 0: greedy
	TopP        float32 // 0 or 1: off
	MinP        float32 // 0: off
	Repetition  float32 // 0 or 1: off; of tokens of the prompt and the output
	Presence    float32 `json:",omitzero"` // 0: off; of tokens of the output
	Frequency   float32 `json:",omitzero"` // 0: off; likewise
	TopK        int     // 0: off
	MaxTokens   int     // 0: up to the context's end
	MinTokens   int     `json:",omitzero"` // no end token and none of StopTokens before the output has so many
	Logprobs    int     // 0: none; k: the token's own, and in Token.Top the k-1 most likely, up to kernels.MaxLogprobs
	// tokens whose log-probabilities Token.Labels has, whatever their rank; with the alternatives
	// at most kernels.MaxLogprobs
	Labels     []int32 `json:",omitzero"`
	Seed       uint64  // with the position, the key of every random number
	StopTokens []int32 // besides the model's end tokens; not part of the output
	EndTokens  []int32 `json:",omitzero"` // as the model's own
	IgnoreEOS  bool    // end tokens are ordinary tokens

	Bias     []Bias    `json:",omitzero"` // of different tokens
	Allowed  []int32   `json:",omitzero"` // no others are chosen; nil: all may be
	BadWords [][]int32 `json:",omitzero"` // the last token of each is not chosen behind the others in the output
	Thinking *Thinking `json:",omitzero"` // nil: no bound

	// PromptLogprobs asks for the log-probabilities of the prompt's tokens from the second
	// on, each a Token of its own. 0: none; k as in Logprobs. The prompt is then computed
	// whole, whatever others have in common with it.
	PromptLogprobs int  `json:",omitzero"`
	PromptOnly     bool `json:",omitzero"` // nothing is generated
}

// Bias is what a token's logit gains.
type Bias struct {
	Token int32
	Gain  float32 // finite
}

// Thinking bounds what is between two marks, which may begin in the prompt: after Budget
// tokens Close follows, token by token.
type Thinking struct {
	Budget      int
	Open, Close []int32
}

// Reason says why a sequence ended.
type Reason string

const (
	Going  Reason = ""       // it has not
	Stop   Reason = "stop"   // an end token or a stop token
	Length Reason = "length" // max_tokens, or the end of the context
	// the model gave no logit that is a number: damaged weights, or no token was left to choose
	Failed Reason = "failed"
)

// Token is one generated token, or the end of a request. A request ends with
// exactly one Token whose Reason is set; that of a Stop or of a Failed is not output, nor
// that of a request for its prompt alone, which is -1. (A request that was cancelled ends
// without.)
type Token struct {
	ID      int64 // of the request
	Token   int32
	Logprob float32   // natural logarithm; 0 unless asked for
	Top     []Logprob // the most likely tokens, best first; nil unless asked for
	Labels  []Logprob // those asked for, in their order; -Inf: a guide does not allow it
	Prompt  bool      // it is of the prompt, the tokens of which come in their order before all others
	Reason  Reason
	Err     error // of a guide that could not go on, where Reason is Failed; nil: there was no token to choose

	Drafted  int  // drafts of the request in the step that gave the token, of the first that it gave
	Accepted bool // the token behind a draft that was right: of a step's, all but the first
}

// Logprob is a token and the natural logarithm of its probability.
type Logprob struct {
	Token   int32
	Logprob float32
}
