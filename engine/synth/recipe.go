package synth

import (
	"encoding/json"
	"fmt"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// RecipePrefix begins the name of a model of random weights: what it is made from
// follows as JSON, so that it can be made again.
const RecipePrefix = "synthetic:"

// recipe is all that random weights follow from.
type recipe struct {
	Seed   uint64          `json:"seed"`
	Config json.RawMessage `json:"config"`
}

// Recipe returns the name of a model of random weights.
func Recipe(config []byte, seed uint64) (string, error) {
	text, err := json.Marshal(recipe{seed, config})
	return RecipePrefix + string(text), err
}

// Remake makes the weights that a name of Recipe stands for.
func Remake(name string) (*checkpoint.Checkpoint, error) {
	var r recipe
	if err := json.Unmarshal([]byte(strings.TrimPrefix(name, RecipePrefix)), &r); err != nil {
		return nil, fmt.Errorf("the capture's random weights: %w", err)
	}
	c, err := glm5.ParseConfig(r.Config)
	if err != nil {
		return nil, fmt.Errorf("the capture's random weights: %w", err)
	}
	return Checkpoint("random weights", r.Config, &c, r.Seed)
}
