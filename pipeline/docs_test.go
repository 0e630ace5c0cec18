package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/golden"
)

// checkTables compares the tables of a page of docs with the program's.
func checkTables(t *testing.T, page string, tables map[string]string) {
	t.Helper()
	path := filepath.Join("..", "docs", page)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	for name, table := range tables {
		open, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		i, j := strings.Index(want, open), strings.Index(want, end)
		if i < 0 || j < i {
			t.Fatalf("%s has no section %s", page, name)
		}
		want = want[:i+len(open)] + table + want[j:]
	}
	if want == string(b) {
		return
	}
	if !golden.Update() {
		t.Fatalf("the tables of docs/%s are not the program's: go test ./pipeline -run Docs -update", page)
	}
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestDocsParameters(t *testing.T) {
	var usual, fields strings.Builder
	usual.WriteString("| parameter | also called | flag | by its name if all values are |\n|---|---|---|---|\n")
	for _, p := range params {
		within := p.within
		if p.column == nil {
			within = "never: only in `sampling_params`"
		}
		fmt.Fprintf(&usual, "| `%s` | %s | %s | %s |\n", p.names[0], codes(p.names[1:]),
			codes(flagsOf(p.names[0])), within)
	}
	fields.WriteString("| field | of | values |\n|---|---|---|\n")
	for i := range requestFields {
		f := &requestFields[i]
		var of []string
		for s, name := range map[source]string{vllm: "vLLM", openai: "OpenAI", server: "vLLM's server",
			hf: "transformers"} {
			if f.of&s != 0 {
				of = append(of, name)
			}
		}
		if len(of) == 2 {
			of = []string{"both"}
		}
		values := "taken"
		switch {
		case findParam(f.name) != nil:
		case len(f.neutral) == 0:
			values = "refused: " + f.why
		case f.neutral[0] == anyValue:
			values = "all are taken, and change nothing"
		default:
			values = codes(f.neutral) + " is taken; others are refused: " + f.why
		}
		fmt.Fprintf(&fields, "| `%s` | %s | %s |\n", f.name, of[0], values)
	}
	checkTables(t, "parameters.md", map[string]string{"usual": usual.String(), "fields": fields.String()})
}

// flagsOf are the flags of glmbatch run that say the same for all rows; its package's
// TestParameterFlags holds them against the flags that there are.
func flagsOf(name string) []string {
	if list, ok := map[string][]string{
		"response_format": {"--json-schema", "--json-object"}, "guided_json": {"--json-schema"},
		"guided_regex":  {"--regex"},
		"guided_choice": {"--choice"}, "guided_grammar": {"--grammar"},
		"structured_outputs": nil, "top_logprobs": nil, "do_sample": nil,
	}[name]; ok {
		return list
	}
	return []string{"--" + strings.ReplaceAll(name, "_", "-")}
}

// TestDocsRows: the rows that docs/parameters.md shows are taken as they are.
func TestDocsRows(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "parameters.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, `{"prompt"`) {
			continue
		}
		found++
		in := linesOf(t, line)
		p, prepare := firstRow(t, in)
		got := prepare()
		// a job has them
		if got.err != nil && got.err.text != got.params.GuidedBy+": there are no guides" || len(p.Notes) > 0 ||
			got.params.GuidedBy == "" {
			t.Errorf("%s: %+v, %v, %+v", line, got.err, p.Notes, got.params)
		}
	}
	if found == 0 {
		t.Error("there is none")
	}
}

func codes(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "`" + strings.Join(list, "` or `") + "`"
}

func TestDocsOutput(t *testing.T) {
	var columns strings.Builder
	columns.WriteString("| column | type | null | what it has |\n|---|---|---|---|\n")
	for _, c := range datasets.ResultColumns {
		fmt.Fprintf(&columns, "| `%s` | %s | %s | %s |\n", c.Name, c.Type, c.Null, c.Help)
	}
	list := func(title string, entries [][2]string) string {
		s := "| " + title + " | what it means |\n|---|---|\n"
		for _, e := range entries {
			s += fmt.Sprintf("| `%s` | %s |\n", e[0], e[1])
		}
		return s
	}
	codes := "| error_code | what it means | may pass |\n|---|---|---|\n"
	for _, e := range errorCodes {
		codes += fmt.Sprintf("| `%s` | %s | %s |\n", e.code, e.means,
			map[bool]string{true: "yes", false: "no"}[e.passes])
	}
	checkTables(t, "output.md", map[string]string{"columns": columns.String(),
		"reasons": list("finish_reason", finishReasons), "codes": codes})
}

var codeConstant = regexp.MustCompile(`(?m)^\t([A-Z]\w+) += "([a-z_0-9]+)"$`)

// TestCodesAreListed: every value of error_code that the code has is in the list.
func TestCodesAreListed(t *testing.T) {
	b, err := os.ReadFile("row.go")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(b), "// errorCode is")
	found := codeConstant.FindAllStringSubmatch(text, -1)
	if len(found) != len(errorCodes) || len(found) < 9 {
		t.Fatalf("%d constants, %d listed", len(found), len(errorCodes))
	}
	for _, m := range found {
		if !slices.ContainsFunc(errorCodes, func(e errorCode) bool { return e.code == m[2] && e.means != "" }) {
			t.Errorf("%s is not listed", m[2])
		}
	}
}
