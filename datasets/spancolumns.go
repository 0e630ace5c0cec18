package datasets

import (
	"fmt"
	"math"
	"sync"
)

// SpanColumns are the rows of one row group of a timeline, by column. Lane,
// Kernel, Class and Evidence are indexes into the reader's [Names].
type SpanColumns struct {
	Step, StartNS, EndNS          []int64
	Rank                          []int32
	Lane, Kernel, Class, Evidence []int32
	Layer, Call, Groups           []int32
	Bytes, WireBytes, FLOPs       []int64
	Correlation, Slots            []int64
	GridX, BlockX, K              []int32

	// Of a reader that was opened for sites; elsewhere nil.
	Operator, Module, Frame []int32

	// Of a reader that was opened for details; elsewhere nil.
	M, N, Heads, TopK, Ranks     []int32
	GridY, GridZ, BlockY, BlockZ []int32
	Ctx, Graph                   []int64
}

// Rows returns the number of rows.
func (c *SpanColumns) Rows() int { return len(c.Step) }

// Columns are columns of a timeline that a reader reads beside those which attribution
// always needs.
type Columns uint8

// What can be asked for, together or alone.
const (
	Sites   Columns = 1 << iota // where kernels were launched from
	Details                     // what only pictures of single calls need
)

// spanColumn ties a column's name to its place. One of wide, narrow and text is set.
type spanColumn struct {
	name   string
	must   bool    // a timeline without it is refused; others are 0 where they lack
	of     Columns // read only where they are asked for
	wide   func(*SpanColumns) *[]int64
	narrow func(*SpanColumns) *[]int32
	text   func(*SpanColumns) *[]int32
}

var spanColumns = []spanColumn{
	{name: "step", must: true, wide: func(c *SpanColumns) *[]int64 { return &c.Step }},
	{name: "rank", must: true, narrow: func(c *SpanColumns) *[]int32 { return &c.Rank }},
	{name: "lane", must: true, text: func(c *SpanColumns) *[]int32 { return &c.Lane }},
	{name: "kernel", must: true, text: func(c *SpanColumns) *[]int32 { return &c.Kernel }},
	{name: "class", must: true, text: func(c *SpanColumns) *[]int32 { return &c.Class }},
	{name: "start_ns", must: true, wide: func(c *SpanColumns) *[]int64 { return &c.StartNS }},
	{name: "end_ns", must: true, wide: func(c *SpanColumns) *[]int64 { return &c.EndNS }},
	{name: "evidence", text: func(c *SpanColumns) *[]int32 { return &c.Evidence }},
	{name: "layer", narrow: func(c *SpanColumns) *[]int32 { return &c.Layer }},
	{name: "call", narrow: func(c *SpanColumns) *[]int32 { return &c.Call }},
	{name: "groups", narrow: func(c *SpanColumns) *[]int32 { return &c.Groups }},
	{name: "bytes", wide: func(c *SpanColumns) *[]int64 { return &c.Bytes }},
	{name: "wire_bytes", wide: func(c *SpanColumns) *[]int64 { return &c.WireBytes }},
	{name: "flops", wide: func(c *SpanColumns) *[]int64 { return &c.FLOPs }},
	{name: "correlation", wide: func(c *SpanColumns) *[]int64 { return &c.Correlation }},
	{name: "slots", wide: func(c *SpanColumns) *[]int64 { return &c.Slots }},
	{name: "grid_x", narrow: func(c *SpanColumns) *[]int32 { return &c.GridX }},
	{name: "block_x", narrow: func(c *SpanColumns) *[]int32 { return &c.BlockX }},
	{name: "k", narrow: func(c *SpanColumns) *[]int32 { return &c.K }},

	{name: "operator", of: Sites, text: func(c *SpanColumns) *[]int32 { return &c.Operator }},
	{name: "module", of: Sites, text: func(c *SpanColumns) *[]int32 { return &c.Module }},
	{name: "frame", of: Sites, text: func(c *SpanColumns) *[]int32 { return &c.Frame }},

	{name: "m", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.M }},
	{name: "n", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.N }},
	{name: "heads", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.Heads }},
	{name: "top_k", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.TopK }},
	{name: "ranks", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.Ranks }},
	{name: "grid_y", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.GridY }},
	{name: "grid_z", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.GridZ }},
	{name: "block_y", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.BlockY }},
	{name: "block_z", of: Details, narrow: func(c *SpanColumns) *[]int32 { return &c.BlockZ }},
	{name: "ctx", of: Details, wide: func(c *SpanColumns) *[]int64 { return &c.Ctx }},
	{name: "graph", of: Details, wide: func(c *SpanColumns) *[]int64 { return &c.Graph }},
}

// Names are the distinct texts of a timeline's text columns, numbered in order
// of appearance. They may be read while a reader adds more. They are what a person
// may see ([ShownName]), whatever a file has.
type Names struct {
	lock  sync.RWMutex
	list  []string
	index map[string]int32
}

// maxNames bounds the distinct texts of a timeline; those of real ones are few.
const maxNames = 1 << 20

func (n *Names) check() error {
	if n.Len() > maxNames {
		return fmt.Errorf("more than %d distinct names", maxNames)
	}
	return nil
}

// Len returns how many names there are.
func (n *Names) Len() int {
	n.lock.RLock()
	defer n.lock.RUnlock()
	return len(n.list)
}

// Name returns the text of a number.
func (n *Names) Name(i int32) string {
	n.lock.RLock()
	defer n.lock.RUnlock()
	return n.list[i]
}

// Number returns the number of a text, a new one if it was not there.
func (n *Names) Number(s string) int32 { return n.number([]byte(s)) }

func (n *Names) number(s []byte) int32 {
	n.lock.Lock()
	defer n.lock.Unlock()
	if i, ok := n.index[string(s)]; ok {
		return i
	}
	if n.index == nil {
		n.index = map[string]int32{}
	}
	i := int32(len(n.list))
	n.list = append(n.list, ShownName(string(s)))
	n.index[string(s)] = i
	return i
}

func clamp32(v int64) int32 { return int32(min(max(v, math.MinInt32), math.MaxInt32)) }

func zeros[T int32 | int64](s []T, n int) []T {
	if cap(s) < n {
		s = make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
