package glm5

import (
	"strings"
	"testing"
)

func TestParseConfigNamesTheModelTypes(t *testing.T) {
	_, err := ParseConfig([]byte(`{"model_type":"llama"}`))
	if err == nil || !strings.Contains(err.Error(), `"llama"`) || !strings.Contains(err.Error(), modelType) {
		t.Fatalf("got %v", err)
	}
}
