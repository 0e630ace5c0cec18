package glm5

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// Builtins are the names that [Builtin] knows.
var Builtins = []string{"glm-5", "glm-5.2", "tiny"}

//go:embed configs
var configs embed.FS

// Builtin returns the config.json of a known model: GLM-5 and GLM-5.1, GLM-5.2,
// or the tiny model that tests and the demo use.
func Builtin(name string) ([]byte, error) {
	if !slices.Contains(Builtins, name) {
		return nil, fmt.Errorf("no built-in config %q: there are %s", name, strings.Join(Builtins, ", "))
	}
	return configs.ReadFile("configs/" + name + ".json")
}
