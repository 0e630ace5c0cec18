package pipeline

import (
	"encoding/json"
	"fmt"
)

// Generation are the defaults that a checkpoint's generation_config.json gives.
type Generation struct {
	Params Params
	EOS    []int32 // end tokens besides those of config.json
}

// ParseGeneration reads generation_config.json; nil bytes are no file. As in
// transformers, sampling is greedy unless do_sample is true or a temperature is
// given without do_sample.
func ParseGeneration(data []byte) (g Generation, err error) {
	if data == nil {
		return g, nil
	}
	var c map[string]json.RawMessage
	if err := json.Unmarshal(data, &c); err != nil {
		return g, fmt.Errorf("generation_config.json: %w", err)
	}
	var sample *bool
	if v, ok := c["do_sample"]; ok && json.Unmarshal(v, &sample) != nil {
		return g, fmt.Errorf("generation_config.json: do_sample is not true or false")
	}
	if _, warm := c["temperature"]; sample != nil && *sample || sample == nil && warm {
		g.Params.Temperature = 1
		for _, name := range []string{"temperature", "top_p", "top_k", "min_p"} {
			if v, ok := c[name]; ok && string(v) != "null" {
				if err := g.Params.Set(name, v); err != nil {
					return g, fmt.Errorf("generation_config.json: %s: %w", name, err)
				}
			}
		}
	}
	for _, name := range []string{"max_new_tokens", "repetition_penalty"} {
		if v, ok := c[name]; ok && string(v) != "null" {
			if err := g.Params.Set(name, v); err != nil {
				return g, fmt.Errorf("generation_config.json: %s: %w", name, err)
			}
		}
	}
	if v, ok := c["eos_token_id"]; ok && string(v) != "null" {
		var one int32
		if json.Unmarshal(v, &one) == nil {
			g.EOS = []int32{one}
		} else if json.Unmarshal(v, &g.EOS) != nil {
			return g, fmt.Errorf("generation_config.json: eos_token_id is neither an id nor a list of ids")
		}
	}
	return g, nil
}
