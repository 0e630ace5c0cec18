package chat

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden is one render by Jinja2 3.1.6 with the settings of transformers.
type golden struct {
	Template string // file in testdata; "" is tiny.jinja
	Source   string // or the template itself
	Input    map[string]json.RawMessage
	Generate bool `json:"add_generation_prompt"`
	Render   string
	Error    string // Jinja2 raised an error instead
}

func (g *golden) input() Input {
	in := Input{AddGenerationPrompt: g.Generate, Kwargs: map[string]json.RawMessage{}}
	for key, raw := range g.Input {
		switch key {
		case "messages":
			in.Messages = raw
		case "tools":
			in.Tools = raw
		case "enable_thinking":
			on := string(raw) == "true"
			in.EnableThinking = &on
		default:
			in.Kwargs[key] = raw
		}
	}
	if in.Messages == nil {
		in.Messages = []byte("[]")
	}
	return in
}

func goldens(t testing.TB, name string) []golden {
	t.Helper()
	return linesOf[golden](t, filepath.Join("testdata", name))
}

// linesOf reads a compressed file of JSON lines to its end.
func linesOf[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var all []T
	for d := json.NewDecoder(z); ; {
		var v T
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%s: line %d: %v", path, len(all)+1, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		t.Fatalf("%s: no lines", path)
	}
	return all
}

// render is the text of a prompt.
func render(t testing.TB, tmpl *Template, in Input) (string, error) {
	t.Helper()
	p, err := tmpl.Render(t.Context(), in)
	return p.Text, err
}

func source(t testing.TB, name string) string {
	t.Helper()
	if name == "tiny.jinja" {
		name = "../../../datasets/demo/model/chat_template.jinja"
	}
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTiny(t *testing.T) {
	tmpl, err := Load(source(t, "tiny.jinja"), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := goldens(t, "tiny.jsonl.gz")
	if len(all) != 18 {
		t.Fatalf("%d renders", len(all))
	}
	for i, g := range all {
		got, err := render(t, tmpl, g.input())
		if err != nil {
			t.Errorf("render %d: %v", i, err)
		}
		if diff := cmp.Diff(g.Render, got); diff != "" {
			t.Errorf("render %d (-want +got):\n%s", i, diff)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := Load(source(b, "tiny.jinja"), nil)
	if err != nil {
		b.Fatal(err)
	}
	all := goldens(b, "tiny.jsonl.gz")
	for name, g := range map[string]golden{"turns": all[0], "short": all[0], "tools": all[12]} {
		in := g.input()
		if name == "turns" {
			in = Input{Turns: []Turn{{"user", "What is 1 + 2?"}}, AddGenerationPrompt: true}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tmpl.Render(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
