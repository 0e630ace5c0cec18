package checkpoint

import "strings"

// transform is an operation on a Linear's input or output that has to be done at
// every step for the stored weight to be right: a Hadamard rotation say.
type transform struct {
	name, kind, at  string
	targets, ignore patterns
}

// transformConfig is compressed-tensors' transform_config.
type transformConfig struct {
	Groups map[string]struct {
		Type  string `json:"type"`
		Apply []struct {
			Targets  []string `json:"targets"`
			Location string   `json:"location"`
			Ignore   []string `json:"ignore"`
		} `json:"apply"`
	} `json:"config_groups"`
}

// online lists the transforms that are not part of the weights already.
func (t *transformConfig) online() []transform {
	var out []transform
	for name, g := range t.Groups {
		for _, a := range g.Apply {
			if strings.HasPrefix(a.Location, "weight") { // stored so
				continue
			}
			out = append(out, transform{name: name, kind: g.Type, at: a.Location, targets: compile(a.Targets),
				ignore: compile(a.Ignore)})
		}
	}
	return out
}

// Online says which operation a module needs beside the product with its weight;
// "": none. What cannot be read of the configuration counts as meant.
func (c *Checkpoint) Online(module string) string {
	for _, t := range c.quant.online {
		for at := module; at != ""; at, _ = cutLast(at) {
			if (t.targets.unread != "" || t.targets.all["Linear"] || t.targets.match(at)) && !t.ignore.match(at) {
				return strings.TrimSpace(t.name + " " + t.kind + " on its " + t.at)
			}
		}
	}
	return ""
}

// cutLast returns the module that a module is in; "": none.
func cutLast(module string) (parent, name string) {
	dot := strings.LastIndexByte(module, '.')
	if dot < 0 {
		return "", module
	}
	return module[:dot], module[dot+1:]
}
