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
// the context.
type Sampling struct {
	Temperature float32 // 0: greedy
	TopP        float32 // 0 or 1: off
	MinP        float32 // 0: off
	Repetition  float32 // 0 or 1: off
	TopK        int     // 0: off
	MaxTokens   int     // 0: up to the context's end
	Logprobs    int     // 0: none; k: the token's own, and in Token.Top the k-1 most likely, up to kernels.MaxLogprobs
	Seed        uint64  // with the position, the key of every random number
	StopTokens  []int32 // besides the model's end tokens; not part of the output
	IgnoreEOS   bool    // the model's end tokens are ordinary tokens
}

// Reason says why a sequence ended.
type Reason string

const (
	Going  Reason = ""       // it has not
	Stop   Reason = "stop"   // an end token or a stop token
	Length Reason = "length" // max_tokens, or the end of the context
	Failed Reason = "failed" // the model gave no logit that is a number: damaged weights, or no token was left to choose
)

// Token is one generated token, or the end of a request. A request ends with
// exactly one Token whose Reason is set; that of a Stop or of a Failed is not output. (A
// request that was cancelled ends without.)
type Token struct {
	ID      int64 // of the request
	Token   int32
	Logprob float32   // natural logarithm; 0 unless asked for
	Top     []Logprob // the most likely tokens, best first; nil unless asked for
	Reason  Reason
	Err     error // of a guide that could not go on, where Reason is Failed; nil: there was no token to choose
}

// Logprob is a token and the natural logarithm of its probability.
type Logprob struct {
	Token   int32
	Logprob float32
}
