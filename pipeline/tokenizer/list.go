package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The large lists of a tokenizer.json are read entry by entry, so that a list of
// many small things is refused before it takes many times its own size.
type (
	vocabulary map[string]int64
	mergeList  [][2]string
	addedList  []addedToken
)

// entries reads a JSON list or object and calls one for each of its values, whose
// text has been read up to it.
func entries(data []byte, open json.Delim, what string, most int, one func(d *json.Decoder) error) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != open {
		return fmt.Errorf("%s: json: cannot unmarshal it into the list that it must be", what)
	}
	for n := 0; d.More(); n++ {
		if n == most {
			return fmt.Errorf("%s: more than %d entries", what, most)
		}
		if err := one(d); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func (v *vocabulary) UnmarshalJSON(data []byte) error {
	*v = make(vocabulary, min(len(data)/16, maxIDs))
	return entries(data, '{', "vocab", maxIDs, func(d *json.Decoder) error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var id int64
		if err := d.Decode(&id); err != nil {
			return fmt.Errorf("vocab: token %.40q: %w", key, err)
		}
		(*v)[key.(string)] = id
		return nil
	})
}

// UnmarshalJSON reads merges in either form, "a b" or ["a", "b"].
func (m *mergeList) UnmarshalJSON(data []byte) error {
	return entries(data, '[', "merges", maxMerges, func(d *json.Decoder) error {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		var parts []string
		if raw[0] == '"' {
			var line string
			if err := json.Unmarshal(raw, &line); err != nil {
				return err
			}
			parts = strings.Split(line, " ")
		} else if err := json.Unmarshal(raw, &parts); err != nil {
			return fmt.Errorf("merges: %w", err)
		}
		if len(parts) != 2 {
			return fmt.Errorf("merges: number %d has %d parts, not 2", len(*m), len(parts))
		}
		*m = append(*m, [2]string(parts))
		return nil
	})
}

func (a *addedList) UnmarshalJSON(data []byte) error {
	size := 0
	return entries(data, '[', "added_tokens", maxAdded, func(d *json.Decoder) error {
		var token addedToken
		if err := d.Decode(&token); err != nil {
			return err
		}
		if size += len(token.Content); size > maxAddedTotal {
			return errors.New("added_tokens: more than 1 MiB of text")
		}
		*a = append(*a, token)
		return nil
	})
}
