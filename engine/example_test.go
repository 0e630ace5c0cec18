package engine_test

import (
	"context"
	"fmt"
	"log"

	"glmbatch/datasets/demo"
	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
	"glmbatch/pipeline/tokenizer"
)

// The demo model answers a question, greedily.
func Example() {
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		log.Fatal(err)
	}
	devices, err := cpu.Open(1, cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	group, err := ranks.New(devices, ranks.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	model, err := glm5.Load(context.Background(), ck, group, glm5.Options{MaxSeqs: 4, Context: 200})
	if err != nil {
		log.Fatal(err)
	}
	tok, err := tokenizer.Load(demo.Files()["tokenizer.json"])
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.New(model, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	// as its chat template has it
	prompt := tok.Encode(nil, "[gMASK]<sop><|user|>Capital of Austria?<|assistant|></think>")
	if err := e.Add(engine.Request{ID: 1, Prompt: prompt, Sampling: engine.Sampling{MaxTokens: 4}}); err != nil {
		log.Fatal(err)
	}
	var ids []int32
	for !e.Idle() {
		tokens, err := e.Step()
		if err != nil {
			log.Fatal(err)
		}
		for _, t := range tokens {
			ids = append(ids, t.Token)
		}
	}
	fmt.Printf("%q\n", tok.Decode(ids, true))
	// Output:
	// "Vienna"
}
