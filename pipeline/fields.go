package pipeline

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// requestField is a field of other engines' requests that a row's parameters may
// have, besides those of [params]. null is always taken: it is the field's absence.
type requestField struct {
	name    string
	of      source
	neutral []string // JSON values that change nothing here; "*": all
	why     string   // a sentence: why other values are refused
}

// source is whose field it is.
type source uint8

const (
	vllm   source = 1 << iota // vLLM's SamplingParams
	openai                    // OpenAI's chat request
	server                    // vLLM's additions to OpenAI's request
	hf                        // transformers' GenerationConfig
)

const (
	noPenalty    = "There are repetition_penalty, presence_penalty and frequency_penalty."
	noBeams      = "There is no beam search; n gives several responses."
	noPromptLogs = "prompt_logprobs has the likeliest tokens at all places."
	noLength     = "max_tokens, min_tokens and thinking_token_budget bound a response."
	noTokenList  = "logit_bias, allowed_token_ids and bad_words say which tokens may be chosen."
	noChat       = "It belongs to the chat template: see --chat-template-kwargs and a column chat_template_kwargs."
	noServer     = "There is no server to do this."
	ownColumn    = "It is a column of its own."
	anyValue     = "*"
)

// requestFields is the table of them. The fields that [params] has are listed without
// values.
var requestFields = []requestField{
	{"n", vllm | openai, nil, ""},
	{"presence_penalty", vllm | openai, nil, ""},
	{"frequency_penalty", vllm | openai, nil, ""},
	{"repetition_penalty", vllm, nil, ""},
	{"temperature", vllm | openai, nil, ""},
	{"top_p", vllm | openai, nil, ""},
	{"top_k", vllm, nil, ""},
	{"min_p", vllm, nil, ""},
	{"seed", vllm | openai, nil, ""},
	{"stop", vllm | openai, nil, ""},
	{"stop_token_ids", vllm, nil, ""},
	{"ignore_eos", vllm, nil, ""},
	{"max_tokens", vllm | openai, nil, ""},
	{"max_completion_tokens", openai, nil, ""},
	{"min_tokens", vllm, nil, ""},
	{"logprobs", vllm | openai, nil, ""},
	{"top_logprobs", openai, nil, ""},
	{"prompt_logprobs", vllm, nil, ""},
	{"prompt_logprob_token_ids", vllm, []string{"[]"}, noPromptLogs},
	{"prompt_logprob_start", vllm, []string{"0"}, noPromptLogs},
	{"logprob_token_ids", vllm, nil, ""},
	{"flat_logprobs", vllm, []string{anyValue}, ""},
	{"detokenize", vllm, []string{"true"}, "Responses are text; --token-ids writes the tokens too."},
	{"skip_special_tokens", vllm, []string{"true"}, "Responses are without special tokens; --token-ids writes all."},
	{"spaces_between_special_tokens", vllm, []string{anyValue}, ""},
	{"include_stop_str_in_output", vllm, nil, ""},
	{"output_kind", vllm, []string{anyValue}, ""},
	{"stream_interval", vllm, []string{anyValue}, ""},
	{"skip_clone", vllm, []string{anyValue}, ""},
	{"output_text_buffer_length", vllm, []string{anyValue}, ""},
	{"_eos_token_id", vllm, []string{anyValue}, ""},
	{"_all_stop_token_ids", vllm, []string{anyValue}, ""},
	{"structured_outputs", vllm, nil, ""},
	{"logit_bias", vllm | openai, nil, ""},
	{"allowed_token_ids", vllm, nil, ""},
	{"extra_args", vllm, []string{"{}"}, "There are no plugins to read them."},
	{"bad_words", vllm, nil, ""},
	{"_bad_words_token_ids", vllm, []string{"[]"}, noTokenList},
	{"skip_reading_prefix_cache", vllm, []string{anyValue}, ""},
	{"thinking_token_budget", vllm, nil, ""},
	{"repetition_detection", vllm, nil, noLength},
	{"routed_experts_prompt_start", vllm, []string{anyValue}, ""},
	{"trace_decode_token_ids", vllm, nil, "Tokens are chosen by the model."},

	{"messages", openai, nil, ownColumn},
	{"model", openai, []string{anyValue}, ""},
	{"audio", openai, nil, "Responses are text."},
	{"function_call", openai, []string{`"none"`, `"auto"`}, "Calls of tools are not forced."},
	{"functions", openai, []string{"[]"}, ownColumn},
	{"metadata", openai, []string{anyValue}, ""},
	{"modalities", openai, []string{`["text"]`}, "Responses are text."},
	{"parallel_tool_calls", openai, []string{anyValue}, ""},
	{"prediction", openai, []string{anyValue}, ""},
	{"prompt_cache_key", openai, []string{anyValue}, ""},
	{"prompt_cache_retention", openai, []string{anyValue}, ""},
	{"reasoning_effort", openai, nil, noChat},
	{"response_format", openai, nil, ""},
	{"safety_identifier", openai, []string{anyValue}, ""},
	{"service_tier", openai, []string{anyValue}, ""},
	{"store", openai, []string{anyValue}, ""},
	{"stream", openai, []string{"false"}, "A job writes whole responses."},
	{"stream_options", openai, []string{anyValue}, ""},
	{"tool_choice", openai, []string{`"none"`, `"auto"`}, "Calls of tools are not forced."},
	{"tools", openai, []string{"[]"}, ownColumn},
	{"user", openai, []string{anyValue}, ""},
	{"verbosity", openai, []string{`"medium"`}, noLength},
	{"web_search_options", openai, nil, noServer},

	{"add_generation_prompt", server, []string{"true"}, noChat},
	{"add_special_tokens", server, []string{"false"}, noChat},
	{"best_of", server, []string{"1"}, noBeams},
	{"cache_salt", server, []string{anyValue}, ""},
	{"chat_template", server, nil, noChat},
	{"chat_template_kwargs", server, []string{"{}"}, noChat},
	{"continue_final_message", server, []string{"false"}, noChat},
	{"documents", server, []string{"[]"}, noChat},
	{"echo", server, []string{"false"}, "A response is what the model adds."},
	{"guided_choice", server, nil, ""},
	{"guided_decoding", server, nil, ""},
	{"guided_grammar", server, nil, ""},
	{"guided_json", server, nil, ""},
	{"guided_regex", server, nil, ""},
	{"include_reasoning", server, []string{anyValue}, ""},
	{"logits_processors", server, []string{"[]"}, noTokenList},
	{"priority", server, []string{anyValue}, ""},
	{"request_id", server, []string{anyValue}, ""},
	{"truncate_prompt_tokens", server, nil, "See --on-overlong."},
	{"truncation_side", server, []string{anyValue}, ""},
	{"use_beam_search", server, []string{"false"}, noBeams},

	{"do_sample", hf, nil, ""},
	{"max_new_tokens", hf, nil, ""},
	{"early_stopping", hf, []string{"false"}, noBeams},
	{"eos_token_id", hf, nil, "stop_token_ids has end tokens besides the model's."},
	{"length_penalty", hf, []string{"1"}, noBeams},
	{"min_new_tokens", hf, nil, ""},
	{"no_repeat_ngram_size", hf, []string{"0"}, noPenalty},
	{"num_beams", hf, []string{"1"}, noBeams},
	{"num_return_sequences", hf, []string{"1"}, "n gives several responses."},
	{"pad_token_id", hf, []string{anyValue}, ""},
	{"transformers_version", hf, []string{anyValue}, ""},
	{"typical_p", hf, []string{"1"}, "top_p and min_p cut unlikely tokens."},
	{"use_cache", hf, []string{anyValue}, ""},
}

func findField(name string) *requestField {
	i := slices.IndexFunc(requestFields, func(f requestField) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &requestFields[i]
}

// takes reports whether a value changes nothing. Numbers are equal however they are
// written.
func (f *requestField) takes(v json.RawMessage) bool {
	if slices.Contains(f.neutral, anyValue) {
		return true
	}
	var have, want any
	if json.Unmarshal(bytes.TrimSpace(v), &have) != nil {
		return false
	}
	for _, n := range f.neutral {
		if json.Unmarshal([]byte(n), &want) == nil && reflect.DeepEqual(have, want) {
			return true
		}
	}
	return have == nil
}
