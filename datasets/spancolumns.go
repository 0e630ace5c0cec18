package datasets

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
)

// SpanColumns are the rows of one row group of a timeline, by column: those of [Span]
// that a reader needs. A field's tag says the column's name, and must where a timeline
// without it is refused (others are 0 where they lack), text where the values are numbers
// of the reader's [Names], and sites or details where it is read only if it was asked for.
type SpanColumns struct {
	Step        []int64 `column:"step,must"`
	Rank        []int32 `column:"rank,must"`
	Lane        []int32 `column:"lane,must,text"`
	Kernel      []int32 `column:"kernel,must,text"`
	Class       []int32 `column:"class,must,text"`
	StartNS     []int64 `column:"start_ns,must"`
	EndNS       []int64 `column:"end_ns,must"`
	Evidence    []int32 `column:"evidence,text"`
	Layer       []int32 `column:"layer"`
	Call        []int32 `column:"call"`
	Groups      []int32 `column:"groups"`
	Bytes       []int64 `column:"bytes"`
	WireBytes   []int64 `column:"wire_bytes"`
	FLOPs       []int64 `column:"flops"`
	Correlation []int64 `column:"correlation"`
	Slots       []int64 `column:"slots"`
	GridX       []int32 `column:"grid_x"`
	BlockX      []int32 `column:"block_x"`
	K           []int32 `column:"k"`

	Operator []int32 `column:"operator,text,sites"`
	Module   []int32 `column:"module,text,sites"`
	Frame    []int32 `column:"frame,text,sites"`

	M      []int32 `column:"m,details"`
	N      []int32 `column:"n,details"`
	Heads  []int32 `column:"heads,details"`
	Rope   []int32 `column:"rope,details"`
	TopK   []int32 `column:"top_k,details"`
	Ranks  []int32 `column:"ranks,details"`
	GridY  []int32 `column:"grid_y,details"`
	GridZ  []int32 `column:"grid_z,details"`
	BlockY []int32 `column:"block_y,details"`
	BlockZ []int32 `column:"block_z,details"`
	Ctx    []int64 `column:"ctx,details"`
	Graph  []int64 `column:"graph,details"`
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

// spanColumn ties a column of [SpanColumns] to that of [Span].
type spanColumn struct {
	name       string
	must, text bool
	of         Columns
	field      int   // of SpanColumns
	row        []int // of Span
}

// spanColumns has the steps first.
var spanColumns = func() []spanColumn {
	rows := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Span]()) {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		rows[name] = f.Index
	}
	var list []spanColumn
	t := reflect.TypeFor[SpanColumns]()
	for i := range t.NumField() {
		tag := strings.Split(t.Field(i).Tag.Get("column"), ",")
		c := spanColumn{name: tag[0], field: i, row: rows[tag[0]]}
		for _, what := range tag[1:] {
			switch what {
			case "must":
				c.must = true
			case "text":
				c.text = true
			case "sites":
				c.of = Sites
			case "details":
				c.of = Details
			}
		}
		list = append(list, c)
	}
	return list
}()

// wide returns the column's values if they have 64 bits, else nil.
func (c *spanColumn) wide(s *SpanColumns) *[]int64 {
	v, _ := reflect.ValueOf(s).Elem().Field(c.field).Addr().Interface().(*[]int64)
	return v
}

// narrow returns the column's values if they have 32 bits, else nil.
func (c *spanColumn) narrow(s *SpanColumns) *[]int32 {
	v, _ := reflect.ValueOf(s).Elem().Field(c.field).Addr().Interface().(*[]int32)
	return v
}

// ColumnsOf returns rows in memory by column, with all columns.
func ColumnsOf(rows []Span, names *Names) *SpanColumns {
	s := &SpanColumns{}
	all := reflect.ValueOf(rows)
	for i := range spanColumns {
		c := &spanColumns[i]
		wide, narrow := c.wide(s), c.narrow(s)
		for r := range rows {
			switch v := all.Index(r).FieldByIndex(c.row); {
			case wide != nil:
				*wide = append(*wide, v.Int())
			case c.text:
				*narrow = append(*narrow, names.Number(v.String()))
			default:
				*narrow = append(*narrow, int32(v.Int()))
			}
		}
	}
	return s
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
