package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"glmbatch/kernels/nvfp4"
)

// quantization is what config.json's quantization_config or hf_quant_config.json
// say about the weights. The tensors themselves decide; this is compared with them.
type quantization struct {
	where    string // the file that says so; "": the model is not quantised
	ignore   patterns
	targets  *patterns       // of the modules that are quantised; nil: all but ignore
	only     map[string]bool // the quantised modules, where the file lists them; nil: all but ignore
	block    [2]int          // rows and columns of an FP8 weight that share a scale; 0: not said
	online   []transform
	warnings []string
}

// quantConfig has all forms of quantization_config.
type quantConfig struct {
	Method  string                `json:"quant_method"`
	Algo    string                `json:"quant_algo"`
	Format  string                `json:"format"`
	Ignore  []string              `json:"ignore"`
	Exclude []string              `json:"exclude_modules"`        // older ModelOpt
	Keep    []string              `json:"modules_to_not_convert"` // transformers' FP8
	Ignored []string              `json:"ignored_layers"`         // vLLM's
	Group   *int                  `json:"group_size"`
	Block   []int                 `json:"weight_block_size"`
	Groups  map[string]quantGroup `json:"config_groups"`
	Layers  map[string]struct {   // of mixed precision
		Algo string `json:"quant_algo"`
	} `json:"quantized_layers"`
	Transforms transformConfig `json:"transform_config"`
	Nested     *quantConfig    `json:"quantization"` // ModelOpt's file in config.json as it is
}

type quantGroup struct {
	Weights *struct {
		Bits  *int            `json:"num_bits"`
		Type  string          `json:"type"`
		Group *int            `json:"group_size"`
		Block json.RawMessage `json:"block_structure"` // a list, or a text in early versions
	} `json:"weights"`
	Targets []string `json:"targets"`
}

// plainJSON says a type error of the JSON library without Go's types.
func plainJSON(err error) error {
	var bad *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &bad):
		return err
	case bad.Field == "":
		return fmt.Errorf("a JSON object is expected, not %s", bad.Value)
	}
	return fmt.Errorf("%s has an unexpected type: %s", bad.Field, bad.Value)
}

func parseQuantization(config, extra []byte) (quantization, error) {
	var doc struct {
		Quant *quantConfig `json:"quantization_config"`
		Old   *quantConfig `json:"compression_config"` // early compressed-tensors
	}
	if err := json.Unmarshal(config, &doc); err != nil {
		return quantization{}, fmt.Errorf("%s: %w", ConfigFile, plainJSON(err))
	}
	if doc.Quant == nil {
		doc.Quant = doc.Old
	}
	var q quantization
	if doc.Quant != nil {
		q.where = ConfigFile + " quantization_config"
		c := doc.Quant
		if c.Nested != nil && c.Algo == "" && c.Groups == nil {
			method := c.Method
			c = c.Nested
			c.Method = method
		}
		if err := q.fill(c); err != nil {
			return q, fmt.Errorf("%s: %w", q.where, err)
		}
	}
	if extra == nil {
		return q, nil
	}
	var hf struct {
		Quant *quantConfig `json:"quantization"`
	}
	if err := json.Unmarshal(extra, &hf); err != nil {
		return q, fmt.Errorf("%s: %w", QuantFile, plainJSON(err))
	}
	if hf.Quant == nil {
		return q, fmt.Errorf("%s has no object \"quantization\"", QuantFile)
	}
	h := quantization{where: QuantFile}
	hf.Quant.Method = "modelopt"
	if err := h.fill(hf.Quant); err != nil {
		return q, fmt.Errorf("%s: %w", QuantFile, err)
	}
	if q.where == "" {
		return h, nil
	}
	q.warnings = append(q.warnings, h.warnings...)
	q.online = append(q.online, h.online...)
	if q.block[0] == 0 {
		q.block = h.block
	}
	var differ faults
	for _, s := range slices.Sorted(maps.Keys(q.ignore.all)) {
		if !h.ignore.all[s] {
			differ.add("%q", s)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(h.ignore.all)) {
		if !q.ignore.all[s] {
			differ.add("%q", s)
		}
	}
	if differ.n > 0 {
		q.warnings = append(q.warnings, fmt.Sprintf("%s and %s leave out different modules, one of them lacks %s",
			q.where, QuantFile, differ.String()))
	}
	return q, nil
}

// formats8 are compressed-tensors' names of forms that have E4M3 or NVFP4 weights.
var formats8 = []string{"nvfp4-pack-quantized", "mixed-precision", "float-quantized", "naive-quantized"}

// known reports whether the weights may be in a form that can be read.
func (c *quantConfig) known() bool {
	switch c.Method {
	case "modelopt":
		return c.Algo == "" || c.Algo == "MIXED_PRECISION" || strings.Contains(c.Algo, "NVFP4") ||
			strings.HasPrefix(c.Algo, "FP8")
	case "compressed-tensors":
		return slices.Contains(formats8, c.Format)
	}
	return c.Method == "fp8"
}

func (q *quantization) fill(c *quantConfig) error {
	if !c.known() {
		return fmt.Errorf("quant_method %q with quant_algo %q and format %q is not supported: glmbatch reads FP8, "+
			"ModelOpt NVFP4 and compressed-tensors nvfp4-pack-quantized", c.Method, c.Algo, c.Format)
	}
	q.ignore = compile(slices.Concat(c.Ignore, c.Exclude, c.Keep, c.Ignored))
	if q.ignore.unread != "" {
		q.warnings = append(q.warnings, fmt.Sprintf("%s says what is not quantised in a way that is not compared "+
			"with the weights: %s", q.where, q.ignore.unread))
	}
	if c.Layers != nil {
		q.only = map[string]bool{}
		for module, l := range c.Layers {
			if strings.Contains(l.Algo, "NVFP4") || strings.Contains(l.Algo, "FP8") {
				q.only[module] = true
			}
		}
	}
	block := c.Block
	sizes := []*int{c.Group}
	var targets []string
	for _, g := range c.Groups {
		targets = append(targets, g.Targets...)
		if g.Weights == nil {
			continue
		}
		sizes = append(sizes, g.Weights.Group)
		if b := g.Weights.Bits; b != nil && *b != 4 && (*b != 8 || g.Weights.Type == "int") {
			q.warnings = append(q.warnings, fmt.Sprintf("%s has a group of %d-bit weights: only its NVFP4 and FP8 "+
				"weights can be read", q.where, *b))
		}
		if block == nil && json.Unmarshal(g.Weights.Block, &block) != nil {
			block = nil // a text: the weights' shapes decide
		}
	}
	if len(targets) > 0 && !slices.Contains(targets, "Linear") {
		t := compile(targets)
		q.targets = &t
	}
	if block != nil {
		if len(block) != 2 || min(block[0], block[1]) < 1 || max(block[0], block[1]) > 1<<20 {
			return fmt.Errorf("weight_block_size is %v: it must be two whole numbers", block)
		}
		q.block = [2]int(block)
	}
	for _, g := range sizes {
		if g != nil && *g != nvfp4.Block && strings.Contains(c.Algo+c.Format, "4") {
			q.warnings = append(q.warnings, fmt.Sprintf("%s says group_size %d: NVFP4 has a scale for each %d", q.where,
				*g, nvfp4.Block))
			break
		}
	}
	q.online = c.Transforms.online()
	return nil
}

// compares reports whether what the configuration says can be held against weights.
func (q *quantization) compares() bool {
	return q.ignore.unread == "" && (q.targets == nil || q.targets.unread == "")
}

func (q *quantization) claims(module string) bool {
	if q.only != nil && !q.only[module] || q.targets != nil && !q.targets.match(module) {
		return false
	}
	return !q.ignore.match(module)
}

// ClaimsQuantized reports whether the configuration says that a Linear is
// quantised: the model is and the module is not left out.
func (c *Checkpoint) ClaimsQuantized(module string) bool {
	return c.quant.where != "" && c.quant.compares() && c.quant.claims(module)
}

// contradictions compares the configuration with what is stored, as far as that
// needs no knowledge of the model.
func (c *Checkpoint) contradictions() []string {
	var left, unsaid faults
	found := 0
	for _, name := range c.names {
		module, ok := strings.CutSuffix(name, ".weight_scale")
		if !ok {
			module, ok = strings.CutSuffix(name, ".weight_scale_inv")
		}
		if !ok {
			continue
		}
		found++
		switch {
		case c.quant.where == "":
			unsaid.add("%s", module)
		case c.quant.compares() && !c.quant.claims(module):
			left.add("%s", module)
		}
	}
	var w []string
	if unsaid.n > 0 {
		w = append(w, fmt.Sprintf("%d weights are stored quantised, but neither %s nor %s says so: %s", unsaid.n,
			ConfigFile, QuantFile, unsaid.String()))
	}
	if left.n > 0 {
		w = append(w, fmt.Sprintf("%d weights are stored quantised, but %s leaves them out: %s", left.n, c.quant.where,
			left.String()))
	}
	if found == 0 && c.quant.where != "" {
		w = append(w, fmt.Sprintf("%s says that weights are quantised, but none is stored so", c.quant.where))
	}
	return w
}
