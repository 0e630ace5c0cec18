package chat

import "glmbatch/pipeline/chat/jinja"

// In a column of structs every struct has every key that one of them has, so null mostly
// stands for a key that was not there. It is a value only where something says so: an
// argument that the schema of the function that is called lets be null.

// parameters are the arguments that may be null, by function.
type parameters map[string]map[string]bool

// nullable looks for them in tools.
func nullable(tools any) parameters {
	list, ok := tools.(*jinja.List)
	if !ok {
		return nil
	}
	all := parameters{}
	for _, v := range list.Items {
		tool, _ := v.(*jinja.Dict)
		if f, ok := get[*jinja.Dict](tool, "function"); ok {
			tool = f
		}
		name, _ := get[string](tool, "name")
		schema, _ := get[*jinja.Dict](tool, "parameters")
		properties, ok := get[*jinja.Dict](schema, "properties")
		if !ok {
			continue
		}
		for i := range properties.Len() {
			k, p := properties.At(i)
			key, _ := k.(string)
			if d, ok := p.(*jinja.Dict); ok && takesNull(d) {
				if all[name] == nil {
					all[name] = map[string]bool{}
				}
				all[name][key] = true
			}
		}
	}
	return all
}

// takesNull reports whether a schema lets a value be null.
func takesNull(schema *jinja.Dict) bool {
	if yes, _ := get[bool](schema, "nullable"); yes {
		return true
	}
	if t, _ := get[string](schema, "type"); t == "null" {
		return true
	}
	for _, key := range []string{"type", "anyOf", "oneOf", "enum"} {
		list, ok := get[*jinja.List](schema, key)
		if !ok {
			continue
		}
		for _, v := range list.Items {
			switch v := v.(type) {
			case nil:
				return key == "enum"
			case string:
				if key == "type" && v == "null" {
					return true
				}
			case *jinja.Dict:
				if t, _ := get[string](v, "type"); t == "null" && key != "enum" {
					return true
				}
			}
		}
	}
	return false
}

// sparse removes the keys of messages that are null at any depth, but for arguments that
// may be.
func sparse(messages *jinja.List, may parameters) {
	keep := map[*jinja.Dict]map[string]bool{}
	for _, m := range messages.Items {
		message, _ := m.(*jinja.Dict)
		calls, ok := get[*jinja.List](message, "tool_calls")
		if !ok {
			continue
		}
		for _, c := range calls.Items {
			call, _ := c.(*jinja.Dict)
			if f, ok := get[*jinja.Dict](call, "function"); ok {
				call = f
			}
			name, _ := get[string](call, "name")
			if a, ok := get[*jinja.Dict](call, "arguments"); ok && may[name] != nil {
				keep[a] = may[name]
			}
		}
	}
	dropNulls(messages, keep)
}

// dropNulls removes the keys that are null at any depth, but for those of some objects.
func dropNulls(v any, keep map[*jinja.Dict]map[string]bool) {
	switch v := v.(type) {
	case *jinja.List:
		for _, x := range v.Items {
			dropNulls(x, keep)
		}
	case *jinja.Dict:
		for i := range v.Len() {
			_, x := v.At(i)
			dropNulls(x, keep)
		}
		v.Keep(func(key string, x any) bool { return x != nil || keep[v][key] })
	}
}
