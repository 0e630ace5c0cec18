package datasets

// Result is what a job adds to each input row: the columns behind the input's.
// Pointers are null where nil.
type Result struct {
	Response         *string `parquet:"response"`           // null for rows with an error
	Reasoning        *string `parquet:"reasoning"`          // null where the model gave none
	FinishReason     string  `parquet:"finish_reason,dict"` // stop, length or error
	PromptTokens     int32   `parquet:"prompt_tokens"`      // after any cut
	CompletionTokens int32   `parquet:"completion_tokens"`  // generated, with those of a stop string
	ErrorCode        *string `parquet:"error_code,dict"`    // null: the row is good
	Error            *string `parquet:"error"`              // for people
	RowIndex         int64   `parquet:"row_index"`          // of the input row, through all files
	SampleIndex      int32   `parquet:"sample_index"`       // 0 to n-1
	Seed             int64   `parquet:"seed"`               // that this sample ran with
	RunID            string  `parquet:"run_id,dict"`        // as in _manifest.json
}

// TokenIDs is the column of --token-ids.
type TokenIDs struct {
	IDs []int32 `parquet:"token_ids,list"`
}

// Logprobs are the columns of --logprobs: natural logarithms.
type Logprobs struct {
	Chosen []float32      `parquet:"logprobs,list"`                             // of each generated token
	Top    [][]TopLogprob `parquet:"top_logprobs,list" parquet-element:",list"` // of each, the most likely tokens, best first
}

// TopLogprob is one alternative of one generated token.
type TopLogprob struct {
	Token   int32   `parquet:"token"`
	Logprob float32 `parquet:"logprob"`
}

// Cut is the column of --on-overlong truncate.
type Cut struct {
	Tokens int32 `parquet:"truncated_tokens"` // cut from the front of the prompt
}
