package pipeline

import (
	"errors"

	"glmbatch/pipeline/chat"
	"glmbatch/pipeline/tokenizer"
)

// Text is the model's side of text: what turns prompts into tokens and back.
type Text struct {
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // nil: the checkpoint has none, prompts must be raw
}

// LoadText reads a checkpoint's tokenizer.json and chat template from its files,
// by name.
func LoadText(files map[string][]byte) (Text, error) {
	if files["tokenizer.json"] == nil {
		return Text{}, errors.New("the checkpoint has no tokenizer.json")
	}
	tok, err := tokenizer.Load(files["tokenizer.json"])
	if err != nil {
		return Text{}, err
	}
	t := Text{Tokenizer: tok}
	if t.Template, err = chat.Read(files, ""); errors.Is(err, chat.ErrNoTemplate) {
		return t, nil
	}
	return t, err
}
