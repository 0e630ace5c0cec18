package jinja

import (
	"math"
	"math/big"
	"strconv"
)

// Dict is a mapping that keeps the order of its keys. Templates cannot change it.
type Dict struct {
	keys, values []any
	index        map[any]int // by hash key; nil while there are few
}

// fewKeys are looked through one by one.
const fewKeys = 8

// NewDict returns an empty mapping with room for n keys.
func NewDict(n int) *Dict { return &Dict{keys: make([]any, 0, n), values: make([]any, 0, n)} }

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Get returns the value of a key that is text.
func (d *Dict) Get(key string) (any, bool) {
	if d.index == nil {
		for i, k := range d.keys {
			if s, ok := k.(string); ok && s == key {
				return d.values[i], true
			}
		}
		return nil, false
	}
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Set gives a key its value; a new key comes last.
func (d *Dict) Set(key string, v any) { d.put(key, key, v) }

// At returns the i-th key and its value.
func (d *Dict) At(i int) (key, value any) { return d.keys[i], d.values[i] }

// Keep removes the keys that f is false for.
func (d *Dict) Keep(f func(key string, v any) bool) {
	n := 0
	for i, k := range d.keys {
		if s, ok := k.(string); !ok || f(s, d.values[i]) {
			d.keys[n], d.values[n] = k, d.values[i]
			n++
		}
	}
	if n == len(d.keys) {
		return
	}
	d.keys, d.values, d.index = d.keys[:n], d.values[:n], nil
	if n > fewKeys {
		d.indexAll()
	}
}

func (d *Dict) indexAll() {
	d.index = make(map[any]int, 2*len(d.keys))
	for i, k := range d.keys {
		h, _ := hashKey(k, 0)
		d.index[h] = i
	}
}

// put is Set with the hash key h of k.
func (d *Dict) put(h, k, v any) {
	if i := d.find(h); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys, d.values = append(d.keys, k), append(d.values, v)
	switch {
	case d.index != nil:
		d.index[h] = len(d.keys) - 1
	case len(d.keys) > fewKeys:
		d.indexAll()
	}
}

// find returns where the key of this hash key is; -1: nowhere.
func (d *Dict) find(h any) int {
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if have, _ := hashKey(k, 0); have == h {
			return i
		}
	}
	return -1
}

// lookup returns the value of any key. Those that Python cannot hash are an error.
func (d *Dict) lookup(k any) (any, bool) {
	if s, ok := k.(string); ok {
		return d.Get(s)
	}
	h, ok := hashKey(k, 0)
	if !ok {
		typeError("unhashable type: '%s'", typeName(k))
	}
	if i := d.find(h); i >= 0 {
		return d.values[i], true
	}
	return nil, false
}

// assign is put for any key, or an error.
func (d *Dict) assign(k, v any) {
	h, ok := hashKey(k, 0)
	if !ok {
		typeError("unhashable type: '%s'", typeName(k))
	}
	d.put(h, k, v)
}

type (
	noneKey      struct{}
	undefinedKey struct{}
	tupleKey     string
	bigKey       string
)

// hashKey returns what is equal, as Go compares, for keys that are equal in
// Python; not ok if v has no hash.
func hashKey(v any, depth int) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	case int:
		return v, true
	case nil:
		return noneKey{}, true
	case bool:
		i, _ := intOf(v)
		return i, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int(v), true
		}
		return v, true
	case *big.Int:
		return bigKey(v.String()), true
	case *undefined:
		return undefinedKey{}, true
	case *tuple:
		if depth > maxValueDepth {
			fail("a tuple nested more than %d deep", maxValueDepth)
		}
		var key []byte
		for _, x := range v.items {
			h, ok := hashKey(x, depth+1)
			if !ok {
				return nil, false
			}
			key = appendKey(key, h)
		}
		return tupleKey(key), true
	case *List, *Dict, view:
		return nil, false
	}
	return v, true // by identity
}

func appendKey(dst []byte, h any) []byte {
	mark := func(kind byte, s string) []byte {
		dst = append(dst, kind)
		dst = strconv.AppendInt(dst, int64(len(s)), 10)
		return append(append(dst, ':'), s...)
	}
	switch h := h.(type) {
	case string:
		return mark('s', h)
	case int:
		return mark('i', strconv.Itoa(h))
	case float64:
		return mark('f', strconv.FormatFloat(h, 'g', -1, 64))
	case bigKey:
		return mark('i', string(h))
	case tupleKey:
		return mark('t', string(h))
	case noneKey:
		return mark('n', "")
	case undefinedKey:
		return mark('u', "")
	}
	fail("a tuple with a function cannot be a key")
	return nil
}
