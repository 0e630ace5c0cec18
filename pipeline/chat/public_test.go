package chat

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"glmbatch/pipeline/chat/jinja"
)

// publicFile names a file of chat templates with what transformers makes of them:
// lines of a template's "source" and its "cases", each with the variables "in", and
// "render" or "error"; "grp" is V where the messages were normalized before, by the
// rules of this package, and C where they went to the template as they are.
// Templates have licences of their own and are not part of this project.
const publicFile = "GLMBATCH_CHAT_TEMPLATES"

type publicTemplate struct {
	Template, Source string
	Cases            []publicCase
}

type publicCase struct {
	Case, Grp string
	In        map[string]json.RawMessage
	Render    *string
	Error     *string
}

func publicTemplates(t testing.TB) []publicTemplate {
	t.Helper()
	name := os.Getenv(publicFile)
	if name == "" {
		t.Skip("only with a file of templates in " + publicFile)
	}
	return linesOf[publicTemplate](t, name)
}

// renderAs renders a case as transformers was asked to.
func (c *publicCase) renderAs(t testing.TB, tmpl *Template) (string, error) {
	in := Input{Messages: c.In["messages"], Tools: c.In["tools"],
		AddGenerationPrompt: string(c.In["add_generation_prompt"]) != "false", Kwargs: map[string]json.RawMessage{}}
	for key, v := range c.In {
		if !slices.Contains(taken, key) {
			in.Kwargs[key] = v
		}
	}
	vars := map[string]any{"tools": nil, "documents": nil, "add_generation_prompt": in.AddGenerationPrompt}
	for key, v := range tmpl.tokens {
		vars[key] = v
	}
	for key, raw := range c.In {
		v, err := jinja.ParseJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		vars[key] = v
	}
	given := vars["messages"].(*jinja.List)
	messages := given
	if c.Grp == "V" {
		var err error
		if messages, err = in.messages(); err != nil {
			return "", err
		}
		vars["messages"] = messages
	}
	for i, v := range messages.Items {
		if c.Grp == "V" {
			// A null content was left as it was in the file; here it is empty.
			if content, ok := given.Items[i].(*jinja.Dict).Get("content"); ok && content == nil {
				v.(*jinja.Dict).Set("content", nil)
			}
			continue
		}
		m := v.(*jinja.Dict)
		for _, key := range reasoningKeys {
			if v, ok := m.Get(key); ok && v != nil {
				messages.Items[i] = aliasReasoning(m, v)
				break
			}
		}
	}
	return tmpl.main.Render(t.Context(), vars, len(c.In["messages"]))
}

var publicTokens = map[string]string{"bos_token": "<s>", "eos_token": "</s>"}

// TestPublic compares renders and errors of public templates with transformers'.
func TestPublic(t *testing.T) {
	equal, wrong := 0, 0
	for _, p := range publicTemplates(t) {
		tmpl, err := Load(p.Source, publicTokens)
		if err != nil {
			t.Errorf("%s: %v", p.Template, err)
			continue
		}
		tmpl.SetNow(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)) // when the file was made
		for _, c := range p.Cases {
			got, err := c.renderAs(t, tmpl)
			switch {
			case c.Error != nil && err == nil:
				t.Errorf("%s %s: %.80q, want the error %s", p.Template, c.Case, got, *c.Error)
			case c.Error == nil && err != nil:
				t.Errorf("%s %s: %v", p.Template, c.Case, err)
			case c.Error == nil && got != *c.Render:
				t.Errorf("%s %s:\n got %q\nwant %q", p.Template, c.Case, got, *c.Render)
			default:
				equal++
				continue
			}
			wrong++
		}
	}
	t.Logf("%d equal, %d not", equal, wrong)
}

// BenchmarkPublic renders all of them.
func BenchmarkPublic(b *testing.B) {
	all := publicTemplates(b)
	templates := make([]*Template, len(all))
	for i, p := range all {
		templates[i], _ = Load(p.Source, publicTokens)
	}
	n := 0
	for b.Loop() {
		for i, p := range all {
			for _, c := range p.Cases {
				if templates[i] == nil || c.Grp != "V" || c.Render == nil {
					continue
				}
				in := Input{Messages: c.In["messages"], Tools: c.In["tools"], AddGenerationPrompt: true}
				if _, err := render(b, templates[i], in); err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "renders/s")
}
