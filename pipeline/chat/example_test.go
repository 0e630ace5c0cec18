package chat_test

import (
	"context"
	"fmt"
	"log"

	"glmbatch/pipeline/chat"
)

func ExampleTemplate_Render() {
	t, err := chat.Load(`{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}`+
		`{% if add_generation_prompt %}<|assistant|>{% endif %}`, nil)
	if err != nil {
		log.Fatal(err)
	}
	p, err := t.Render(context.Background(), chat.Input{Messages: []byte(`[{"role": "user", "content": "7 + 5 ="}]`),
		AddGenerationPrompt: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Text)
	// Output:
	// <|user|>7 + 5 =<|assistant|>
}
