package jinja_test

import (
	"context"
	"fmt"
	"log"

	"glmbatch/pipeline/chat/jinja"
)

func ExampleTemplate_Render() {
	t, err := jinja.Parse("{% for x in list %}{{ loop.index }}: {{ x | upper }}\n{% endfor %}")
	if err != nil {
		log.Fatal(err)
	}
	list, err := jinja.ParseJSON([]byte(`["one", "two"]`))
	if err != nil {
		log.Fatal(err)
	}
	text, err := t.Render(context.Background(), map[string]any{"list": list}, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
	// Output:
	// 1: ONE
	// 2: TWO
}
