package glm5

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// fields reads the members of a JSON object one by one and collects what is
// wrong with them. null counts as absent.
type fields struct {
	raw    map[string]json.RawMessage
	prefix string   // of names in faults: the objects around, each with a dot
	faults *[]error // shared with the objects inside
}

func (f *fields) fault(format string, args ...any) {
	*f.faults = append(*f.faults, fmt.Errorf(f.prefix+format, args...))
}

func (f *fields) get(name string) (json.RawMessage, bool) {
	raw, ok := f.raw[name]
	return raw, ok && string(raw) != "null"
}

func (f *fields) has(name string) bool { _, ok := f.get(name); return ok }

// sizeOr reads a whole number from low to high; missing is what an absent one is.
// It is 0 after a fault.
func (f *fields) sizeOr(name string, missing, low, high int) int {
	v := f.number(name, float64(missing), float64(low), float64(high))
	if v != math.Trunc(v) {
		f.fault("%s is %v: it must be a whole number", name, v)
		return 0
	}
	return int(v)
}

// number is 0 after a fault.
func (f *fields) number(name string, missing, low, high float64) float64 {
	raw, ok := f.get(name)
	if !ok {
		return missing
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil {
		f.fault("%s is %s: it must be a number", name, shorten(raw))
		return 0
	}
	if !(v >= low && v <= high) {
		f.fault("%s is %v: it must be from %v to %v", name, v, low, high)
		return 0
	}
	return v
}

func (f *fields) flag(name string, missing bool) bool {
	raw, ok := f.get(name)
	if !ok {
		return missing
	}
	var v bool
	if err := json.Unmarshal(raw, &v); err != nil {
		f.fault("%s is %s: it must be true or false", name, shorten(raw))
	}
	return v
}

func (f *fields) text(name, missing string) string {
	raw, ok := f.get(name)
	if !ok {
		return missing
	}
	var v string
	if err := json.Unmarshal(raw, &v); err != nil {
		f.fault("%s is %s: it must be a string", name, shorten(raw))
	}
	return v
}

func (f *fields) texts(name string) []string {
	raw, ok := f.get(name)
	if !ok {
		return nil
	}
	var v []string
	if err := json.Unmarshal(raw, &v); err != nil {
		f.fault("%s is %s: it must be a list of strings", name, shorten(raw))
		return nil
	}
	return v
}

// object returns the members of an object, or nil.
func (f *fields) object(name string) *fields {
	raw, ok := f.get(name)
	if !ok {
		return nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		f.fault("%s is %s: it must be an object", name, shorten(raw))
		return nil
	}
	return &fields{raw: m, prefix: f.prefix + name + ".", faults: f.faults}
}

func (f *fields) only(name, missing, want string) {
	if v := f.text(name, missing); v != want {
		f.fault("%s %q is not supported: glmbatch computes %q", name, v, want)
	}
}

func (f *fields) onlyFlag(name string, want bool) {
	if v := f.flag(name, want); v != want {
		f.fault("%s %v is not supported: glmbatch computes %v", name, v, want)
	}
}

func shorten(raw []byte) string {
	if len(raw) > 40 {
		return plainText(string(raw[:40])) + "…"
	}
	return plainText(string(raw))
}

// plainJSON says an error of the JSON library without Go's types.
func plainJSON(err error) error {
	var bad *json.UnmarshalTypeError
	if errors.As(err, &bad) {
		return fmt.Errorf("a JSON object is expected, not %s", bad.Value)
	}
	return err
}

// plainText escapes what a terminal would take for more than letters.
func plainText(s string) string {
	q := strconv.QuoteToGraphic(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
