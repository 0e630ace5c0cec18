package datasets

import (
	"errors"
	"slices"

	"github.com/parquet-go/parquet-go"
)

var errTypes = errors.New("these types have none that holds both")

func copyNode(n *node) *node {
	c := *n
	c.fields = make([]parquet.Field, len(n.fields))
	for i := range c.fields {
		c.fields[i] = copyNode(n.child(i))
	}
	return &c
}

// optional lets a node be null, if it has one value at most.
func (n *node) optional() {
	if n.rep == required {
		n.rep = optional
	}
}

// replace puts a field in the place of the one with its name.
func (n *node) replace(c *node) {
	i := slices.IndexFunc(n.fields, func(f parquet.Field) bool { return f.Name() == c.name })
	n.fields[i] = c
}

// merge returns the node that holds the values of both: have is the table's, and
// may be changed.
func merge(have, c *node) (*node, error) {
	if !fits(have, c) {
		switch {
		case have.rep == repeated || c.rep == repeated:
		case have.onlyNulls():
			name := have.name
			have = copyNode(c)
			have.name = name
			have.optional()
			return have, nil
		case c.onlyNulls():
			have.optional()
			return have, nil
		}
		return nil, errTypes
	}
	if c.rep == optional {
		have.optional()
	}
	switch {
	case have.leaf:
		typ, ok := wider(have.typ, c.typ)
		if !ok {
			return nil, errTypes
		}
		if typ != have.typ {
			have.elem = nil
			if typ == c.typ {
				have.elem = c.elem
			}
		}
		have.typ, have.nulls = typ, have.nulls && c.nulls
		return have, nil
	case have.isList():
		return mergeLists(have, c)
	case have.isMap():
		return have, mergeEach(have.child(0), c.child(0))
	}
	return have, mergeFields(have, c)
}

// onlyNulls reports that every leaf of a node has nulls alone.
func (n *node) onlyNulls() bool {
	for _, l := range n.leafNodes() {
		if !l.nulls && !l.isNull() {
			return false
		}
	}
	return n.leaf || len(n.fields) > 0
}

// fits reports that two nodes are of one kind: leaves whose types one holds, lists,
// maps or structs.
func fits(a, b *node) bool {
	if a.leaf != b.leaf || a.isList() != b.isList() || a.isMap() != b.isMap() ||
		(a.rep == repeated) != (b.rep == repeated) {
		return false
	}
	_, ok := wider(a.typ, b.typ)
	return !a.leaf || ok
}

// mergeLists merges the elements of lists. A list whose repeated field is the
// element itself, as old writers have it, becomes one that wraps it if one of the
// two does.
func mergeLists(have, c *node) (*node, error) {
	he, ce := element(have.child(0)), element(c.child(0))
	wrapped := he != have.child(0)
	if !wrapped && ce != c.child(0) {
		with := copyNode(c)
		with.name, with.rep, wrapped = have.name, have.rep, true
		have = with
	}
	merged, err := merge(asElement(he), asElement(ce))
	if err != nil {
		return nil, err
	}
	if !wrapped {
		if merged.rep == optional {
			return nil, errTypes
		}
		merged.rep, merged.name = repeated, he.name
		have.fields[0] = merged
		return have, nil
	}
	merged.name = element(have.child(0)).name
	have.child(0).fields[0] = merged
	return have, nil
}

// asElement is a copy of a list's element, which is there once if the repeated
// field is the element itself.
func asElement(n *node) *node {
	if n.rep == repeated {
		return asRequired(n)
	}
	return copyNode(n)
}

func mergeEach(have, c *node) error {
	for i := range have.fields {
		merged, err := merge(have.child(i), c.child(i))
		if err != nil {
			return err
		}
		have.fields[i] = merged
	}
	return nil
}

// mergeFields merges structs by their fields' names.
func mergeFields(have, c *node) error {
	for i := range c.fields {
		f := c.child(i)
		old := have.field(f.name)
		if old == nil {
			added := copyNode(f)
			added.optional()
			have.fields = append(have.fields, added)
			continue
		}
		merged, err := merge(old, f)
		if err != nil {
			return err
		}
		have.replace(merged)
	}
	for i := range have.fields {
		if old := have.child(i); c.field(old.name) == nil {
			old.optional()
		}
	}
	return nil
}

func asRequired(n *node) *node {
	r := copyNode(n)
	r.rep = required
	return r
}
