package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"glmbatch/kernels/nvfp4"
)

// quantization is what config.json's quantization_config or hf_quant_config.json
// say about the weights. The tensors themselves decide; this is compared with them.
type quantization struct {
	where    string // the file that says so; "": the model is not quantised
	ignore   patterns
	only     map[string]bool // the quantised modules, where the file lists them; nil: all but ignore
	warnings []string
}

// quantConfig has both forms of quantization_config.
type quantConfig struct {
	Method  string                `json:"quant_method"`
	Algo    string                `json:"quant_algo"`
	Format  string                `json:"format"`
	Ignore  []string              `json:"ignore"`
	Exclude []string              `json:"exclude_modules"` // older ModelOpt
	Group   *int                  `json:"group_size"`
	Groups  map[string]quantGroup `json:"config_groups"`
	Layers  map[string]struct {   // of mixed precision
		Algo string `json:"quant_algo"`
	} `json:"quantized_layers"`
}

type quantGroup struct {
	Weights *struct {
		Bits  *int   `json:"num_bits"`
		Type  string `json:"type"`
		Group *int   `json:"group_size"`
	} `json:"weights"`
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
		if err := q.fill(doc.Quant); err != nil {
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
	var differ faults
	for _, s := range q.ignore.all {
		if !contains(h.ignore.all, s) {
			differ.add("%q", s)
		}
	}
	for _, s := range h.ignore.all {
		if !contains(q.ignore.all, s) {
			differ.add("%q", s)
		}
	}
	if differ.n > 0 {
		q.warnings = append(q.warnings, fmt.Sprintf("%s and %s leave out different modules, one of them lacks %s", q.where, QuantFile, differ.String()))
	}
	return q, nil
}

func (q *quantization) fill(c *quantConfig) error {
	switch {
	case c.Method == "modelopt" && (strings.Contains(c.Algo, "NVFP4") || c.Algo == "" || c.Algo == "MIXED_PRECISION"):
	case c.Method == "compressed-tensors" && (c.Format == "nvfp4-pack-quantized" || c.Format == "mixed-precision"):
	case c.Method == "fp8" || strings.Contains(c.Algo, "FP8"):
		return fmt.Errorf("FP8 weights (quant_method %q, quant_algo %q) are not supported: use the BF16 release, or an NVFP4 one (glmbatch model quantize makes it from BF16)", c.Method, c.Algo)
	default:
		return fmt.Errorf("quant_method %q with quant_algo %q and format %q is not supported: glmbatch reads ModelOpt NVFP4 and compressed-tensors nvfp4-pack-quantized", c.Method, c.Algo, c.Format)
	}
	var err error
	if q.ignore, err = compile(append(slices.Clone(c.Ignore), c.Exclude...)); err != nil {
		return err
	}
	if c.Layers != nil {
		q.only = map[string]bool{}
		for module, l := range c.Layers {
			if strings.Contains(l.Algo, "NVFP4") {
				q.only[module] = true
			}
		}
	}
	sizes := []*int{c.Group}
	for _, g := range c.Groups {
		if g.Weights == nil {
			continue
		}
		sizes = append(sizes, g.Weights.Group)
		if b := g.Weights.Bits; b != nil && *b != 4 {
			q.warnings = append(q.warnings, fmt.Sprintf("%s has a group of %d-bit weights: only its NVFP4 weights can be read", q.where, *b))
		}
	}
	for _, g := range sizes {
		if g != nil && *g != nvfp4.Block {
			q.warnings = append(q.warnings, fmt.Sprintf("%s says group_size %d: NVFP4 has a scale for each %d", q.where, *g, nvfp4.Block))
			break
		}
	}
	return nil
}

func contains(sorted []string, s string) bool {
	_, ok := slices.BinarySearch(sorted, s)
	return ok
}

func (q *quantization) claims(module string) bool {
	if q.only != nil && !q.only[module] {
		return false
	}
	return !q.ignore.match(module)
}

// ClaimsQuantized reports whether the configuration says that a Linear is
// stored as NVFP4: the model is quantised and the module is not left out.
func (c *Checkpoint) ClaimsQuantized(module string) bool {
	return c.quant.where != "" && c.quant.claims(module)
}

// contradictions compares the configuration with what is stored, as far as that
// needs no knowledge of the model.
func (c *Checkpoint) contradictions() []string {
	var left, unsaid faults
	found := 0
	for _, name := range c.names {
		module, ok := strings.CutSuffix(name, ".weight_scale")
		if !ok || c.tensors[name].DType != F8 {
			continue
		}
		found++
		switch {
		case c.quant.where == "":
			unsaid.add("%s", module)
		case !c.quant.claims(module):
			left.add("%s", module)
		}
	}
	var w []string
	if unsaid.n > 0 {
		w = append(w, fmt.Sprintf("%d weights are stored as NVFP4, but neither %s nor %s says so: %s", unsaid.n, ConfigFile, QuantFile, unsaid.String()))
	}
	if left.n > 0 {
		w = append(w, fmt.Sprintf("%d weights are stored as NVFP4, but %s leaves them out: %s", left.n, c.quant.where, left.String()))
	}
	if found == 0 && c.quant.where != "" {
		w = append(w, fmt.Sprintf("%s says NVFP4, but no weight is stored so", c.quant.where))
	}
	return w
}
