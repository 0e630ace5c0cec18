package datasets

// Result is what a job adds to each input row: the columns behind the input's.
// Pointers are null where nil.
type Result struct {
	Response     *string `parquet:"response"`           // null for rows with an error
	Reasoning    *string `parquet:"reasoning"`          // null where the model gave none
	FinishReason string  `parquet:"finish_reason,dict"` // stop, length or error
	// the stop text or the id of the stop token; null: none of them ended it
	StopReason *string `parquet:"stop_reason,dict"`
	// that the model was given, after any cut; 0 for rows that it was not given
	PromptTokens     int32   `parquet:"prompt_tokens"`
	CompletionTokens int32   `parquet:"completion_tokens"` // generated, with those of a stop string
	ErrorCode        *string `parquet:"error_code,dict"`   // null: the row is good
	Error            *string `parquet:"error"`             // for people
	RowIndex         int64   `parquet:"row_index"`         // of the input row, through all files
	SampleIndex      int32   `parquet:"sample_index"`      // 0 to n-1
	Seed             int64   `parquet:"seed"`              // that this sample ran with
	RunID            string  `parquet:"run_id,dict"`       // as in _manifest.json
}

// TokenIDs is the column of --token-ids.
type TokenIDs struct {
	IDs []int32 `parquet:"token_ids,list"`
}

// Logprobs are the columns of --logprobs. Both have an entry for each generated token
// and, where the model ended the response, one for the end token.
type Logprobs struct {
	Chosen []TokenLogprob `parquet:"logprobs,list"` // of the token itself
	// of the most likely tokens, best first
	Top [][]TokenLogprob `parquet:"top_logprobs,list" parquet-element:",list"`
}

// PromptLogprobs are the columns of --prompt-logprobs. Both have an entry for each token
// that the model was given, from the second on: nothing says what the first could be.
type PromptLogprobs struct {
	Chosen []TokenLogprob   `parquet:"prompt_logprobs,list"`
	Top    [][]TokenLogprob `parquet:"prompt_top_logprobs,list" parquet-element:",list"`
}

// TokenLogprob is what the model gave a token.
type TokenLogprob struct {
	Token   string  `parquet:"token"`   // its text; what is no whole character is U+FFFD
	ID      int32   `parquet:"id"`      // as in token_ids
	Logprob float32 `parquet:"logprob"` // natural logarithm of its probability, before temperature and cuts
	Rank    *int32  `parquet:"rank"`    // 1 for the likeliest; null: beyond the alternatives asked for
}

// Cut is the column of --on-overlong truncate.
type Cut struct {
	Tokens int32 `parquet:"truncated_tokens"` // cut from the prompt's content
}

// ToolCalls are the columns of inputs that have tools.
type ToolCalls struct {
	Calls *string `parquet:"tool_calls"`      // a JSON list, as in OpenAI's messages; null: there are none
	Note  *string `parquet:"tool_calls_note"` // why a call is left in the response; null: none is
}

// ResultColumn says of a column of results what people need to know.
type ResultColumn struct{ Name, Type, Null, Help string }

// ResultColumns are all columns of results, in the order of the files.
var ResultColumns = []ResultColumn{
	{"response", "string", "in rows with an error", "what the model answered, without its reasoning and end token"},
	{"reasoning", "string", "where the model gave none", "what stood before `</think>`"},
	{"finish_reason", "string", "never", "why the response ended"},
	{"stop_reason", "string", "where an end token, max_tokens or the context's end ended the response",
		"what ended the response: the stop text, or the id of the token of stop_token_ids"},
	{"prompt_tokens", "int32, tokens", "never",
		"tokens that the model was given, after any cut; 0 in rows that it was not given"},
	{"completion_tokens", "int32, tokens", "never",
		"tokens of the response and its reasoning, without the end token, with those of a stop text; 0 in rows with " +
			"an error"},
	{"error_code", "string", "in good rows", "why there is no response"},
	{"error", "string", "in good rows", "the same for people, in one line"},
	{"row_index", "int64", "never", "number of the input row through all files, from 0"},
	{"sample_index", "int32", "never", "number of the response to its row, from 0 to n-1"},
	{"seed", "int64", "never",
		"that this response was sampled with: as the parameter `seed` of its row it gives the response again"},
	{"run_id", "string", "never", "as in `_manifest.json`"},
	{"truncated_tokens", "int32, tokens", "never", "with `--on-overlong truncate`: by how many the prompt is shorter"},
	{"token_ids", "list of int32", "never", "with `--token-ids`: the tokens of the response and its reasoning"},
	{"logprobs", "list of {token string, id int32, logprob float, rank int32}",
		"never; rank where it is beyond the alternatives asked for",
		"with `--logprobs`: of each token of token_ids and then of the end token, if one ended the response; natural " +
			"logarithms before temperature and cuts, at least -9999; empty where the row asks for none"},
	{"top_logprobs", "list of list of the same", "never",
		"with `--logprobs`: of the likeliest tokens at each of these places, best first; then those of " +
			"logprob_token_ids that are not among them, in their order, with null as rank"},
	{"prompt_logprobs", "list of the same", "never",
		"with `--prompt-logprobs`: of each token that the model was given, from the second on; empty where the row " +
			"asks for none"},
	{"prompt_top_logprobs", "list of list of the same", "never",
		"with `--prompt-logprobs`: of the likeliest tokens at each of these places, best first"},
	{"tool_calls", "string, JSON", "where the model asks for none",
		"where the input has tools: the calls of functions that the response asks for, as OpenAI's messages have " +
			"them; they are not in response"},
	{"tool_calls_note", "string", "where none is wrong",
		"where the input has tools: why a call that the model wrote is left in response"},
}
