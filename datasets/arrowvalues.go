package datasets

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/decimal256"
)

// arrowValues checks that the arrays of batches are what their types say: each buffer holds its
// values, offsets ascend within what they refer to, children are as long as their parents need,
// nulls are as many as counted, and values are of their type (Arrow columnar format, section
// "Physical memory layout"; the rules are those of Arrow's ValidateFull, but for text that is not
// UTF-8, which is an error of its row). The library reads zeros behind a short buffer.
type arrowValues struct {
	known, now map[arrow.ArrayData]bool // dictionaries of the last batch and of this one
}

// batch reports what is wrong with a batch.
func (c *arrowValues) batch(batch arrow.Record) error {
	c.known, c.now = c.now, nil
	for i, column := range batch.Columns() {
		if err := c.array(column.Data()); err != nil {
			return fmt.Errorf("column %q: %w: write the file again", batch.ColumnName(i), err)
		}
	}
	return nil
}

// checkBatch is for a batch alone.
func checkBatch(batch arrow.Record) error { return new(arrowValues).batch(batch) }

func wrongArray(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errArrow}, a...)...)
}

func (c *arrowValues) array(data arrow.ArrayData) error {
	if data.Len() < 0 || data.Offset() < 0 || data.Len() > maxArrowLength || data.Offset() > maxArrowLength {
		return wrongArray("%d values from %d on", data.Len(), data.Offset())
	}
	typ := data.DataType()
	if e, ok := typ.(arrow.ExtensionType); ok {
		typ = e.StorageType()
	}
	if err := checkSizes(data, typ); err != nil {
		return err
	}
	if err := checkNulls(data, typ.ID()); err != nil {
		return err
	}
	for _, child := range data.Children() {
		if err := c.array(child); err != nil {
			return err
		}
	}
	values := data.Dictionary()
	if d, ok := typ.(*arrow.DictionaryType); ok {
		if values == nil || values.(*array.Data) == nil {
			return wrongArray("a column of a dictionary without one")
		}
		if c.now == nil {
			c.now = map[arrow.ArrayData]bool{}
		}
		if c.now[values] = true; !c.known[values] {
			if err := c.array(values); err != nil {
				return fmt.Errorf("its dictionary: %w", err)
			}
		}
		return checkPositions(data, d.IndexType, values.Len())
	}
	return checkValues(data, typ)
}

const maxArrowLength = 1 << 40

// checkSizes compares the buffers with the number of values.
func checkSizes(data arrow.ArrayData, typ arrow.DataType) error {
	layout, n := typ.Layout(), data.Len()
	if _, union := typ.(arrow.UnionType); union || n == 0 {
		return nil // the library's layouts of unions lack what comes first; of no values, buffers may be missing
	}
	last := n + data.Offset()
	for i, spec := range layout.Buffers {
		var buffer []byte
		if i < len(data.Buffers()) && data.Buffers()[i] != nil {
			buffer = data.Buffers()[i].Bytes()
		}
		what, need, has := "a buffer", last, 0
		switch {
		case spec.Kind == arrow.KindBitmap && i == 0:
			if len(buffer) == 0 && data.(*array.Data).NullN() <= 0 {
				continue // no bitmap: all values are there
			}
			what, has = "a validity bitmap", 8*len(buffer)
		case spec.Kind == arrow.KindBitmap:
			has = 8 * len(buffer)
		case spec.Kind == arrow.KindFixedWidth && spec.ByteWidth > 0:
			if has = len(buffer) / spec.ByteWidth; i == 1 && hasOffsets(typ.ID()) {
				need++
			}
		default:
			continue
		}
		if has < need {
			return wrongArray("%s of %d bytes for %d values of %s", what, len(buffer), n, typ)
		}
	}
	return nil
}

// hasOffsets reports whether a type's second buffer has an offset more than there are values.
func hasOffsets(id arrow.Type) bool {
	switch id {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LIST, arrow.LARGE_LIST, arrow.MAP:
		return true
	}
	return false
}

// checkNulls reports an array that says another number of nulls than its validity bitmap has:
// one of the two is damaged, and no one can say which values are there.
func checkNulls(data arrow.ArrayData, id arrow.Type) error {
	said := data.(*array.Data).NullN()
	switch {
	case id == arrow.NULL:
		if said >= 0 && said != data.Len() {
			return wrongArray("null_count is %d of %d nulls", said, data.Len())
		}
		return nil
	case said < 0:
		return nil
	}
	nulls := 0
	if buffers := data.Buffers(); hasBitmap(id) && len(buffers) > 0 && buffers[0] != nil &&
		buffers[0].Len() > 0 {
		nulls = data.Len() - bitutil.CountSetBits(buffers[0].Bytes(), data.Offset(), data.Len())
	}
	if nulls != said {
		return wrongArray("null_count is %d, the validity bitmap has %d nulls", said, nulls)
	}
	return nil
}

// hasBitmap reports whether a type's first buffer is a validity bitmap.
func hasBitmap(id arrow.Type) bool {
	switch id {
	case arrow.NULL, arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.RUN_END_ENCODED:
		return false
	}
	return true
}

// there calls f with the place of each value that is there.
func there(data arrow.ArrayData, f func(i int) error) error {
	var bitmap []byte
	if b := data.Buffers(); hasBitmap(data.DataType().ID()) && len(b) > 0 && b[0] != nil && b[0].Len() > 0 {
		bitmap = b[0].Bytes()
	}
	for i := data.Offset(); i < data.Offset()+data.Len(); i++ {
		if bitmap == nil || bitutil.BitIsSet(bitmap, i) {
			if err := f(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// integer reads whole number i of a buffer whose numbers have so many bits.
func integer(b []byte, i, bits int, unsigned bool) int64 {
	le := binary.LittleEndian
	switch {
	case bits == 8 && unsigned:
		return int64(b[i])
	case bits == 8:
		return int64(int8(b[i]))
	case bits == 16 && unsigned:
		return int64(le.Uint16(b[2*i:]))
	case bits == 16:
		return int64(int16(le.Uint16(b[2*i:])))
	case bits == 32 && unsigned:
		return int64(le.Uint32(b[4*i:]))
	case bits == 32:
		return int64(int32(le.Uint32(b[4*i:])))
	}
	return int64(le.Uint64(b[8*i:])) // those above 1<<63 are out of any bounds as negative ones are
}

// checkPositions compares positions in a dictionary with its length.
func checkPositions(data arrow.ArrayData, typ arrow.DataType, n int) error {
	index, ok := typ.(arrow.FixedWidthDataType)
	if !ok || !arrow.IsInteger(typ.ID()) {
		return wrongArray("positions in a dictionary of type %s", typ)
	}
	if data.Len() == 0 {
		return nil
	}
	bits, unsigned := index.BitWidth(), arrow.IsUnsignedInteger(typ.ID())
	b := data.Buffers()[1].Bytes()
	return there(data, func(i int) error {
		if at := integer(b, i, bits, unsigned); at < 0 || at >= int64(n) {
			return wrongArray("position %d in a dictionary of %d", at, n)
		}
		return nil
	})
}

// checkOffsets reports offsets of so many bits that do not ascend, or lead behind limit.
func checkOffsets(data arrow.ArrayData, bits, limit int) error {
	b := data.Buffers()[1].Bytes()
	before := int64(0)
	for i := data.Offset(); i <= data.Offset()+data.Len(); i++ {
		at := integer(b, i, bits, false)
		if at < before || at > int64(limit) {
			return wrongArray("offset %d behind %d, of %d", at, before, limit)
		}
		before = at
	}
	return nil
}

// checkValues compares values with their type, and children with their parents.
func checkValues(data arrow.ArrayData, typ arrow.DataType) error {
	n, last := data.Len(), data.Len()+data.Offset()
	children := data.Children()
	if nested, ok := typ.(arrow.NestedType); ok && len(children) != nested.NumFields() {
		return wrongArray("%d children of a column of %s", len(children), typ)
	}
	if n == 0 {
		return nil
	}
	// ranged reports values of so many bits that are not among 0 to before limit.
	ranged := func(bits int, limit int64) error {
		b := data.Buffers()[1].Bytes()
		return there(data, func(i int) error {
			if v := integer(b, i, bits, false); v < 0 || v >= limit {
				return wrongArray("%d is no time of a day in %s", v, typ)
			}
			return nil
		})
	}
	const day = 24 * 60 * 60
	switch t := typ.(type) {
	case *arrow.BinaryType, *arrow.StringType:
		return checkOffsets(data, 32, data.Buffers()[2].Len())
	case *arrow.LargeBinaryType, *arrow.LargeStringType:
		return checkOffsets(data, 64, data.Buffers()[2].Len())
	case *arrow.BinaryViewType, *arrow.StringViewType:
		return checkViews(data)
	case *arrow.ListType:
		return checkOffsets(data, 32, children[0].Len())
	case *arrow.LargeListType:
		return checkOffsets(data, 64, children[0].Len())
	case *arrow.MapType:
		entries := children[0]
		if len(entries.Children()) != 2 || entries.(*array.Data).NullN() > 0 ||
			entries.Children()[0].(*array.Data).NullN() > 0 {
			return wrongArray("a map with keys or entries that are null")
		}
		return checkOffsets(data, 32, entries.Len())
	case *arrow.ListViewType:
		return checkListViews(data, 32, children[0].Len())
	case *arrow.LargeListViewType:
		return checkListViews(data, 64, children[0].Len())
	case *arrow.FixedSizeListType:
		if size := int(t.Len()); size < 0 || size > 0 && children[0].Len()/size < last {
			return wrongArray("%d values in %d lists of %d", children[0].Len(), last, size)
		}
	case *arrow.StructType:
		return childrenOf(children, last)
	case *arrow.SparseUnionType:
		if err := childrenOf(children, last); err != nil {
			return err
		}
		return checkUnion(data, t, nil)
	case *arrow.DenseUnionType:
		return checkUnion(data, t, children)
	case *arrow.RunEndEncodedType:
		return checkRuns(data, t)
	case *arrow.Time32Type:
		if t.Unit == arrow.Second {
			return ranged(32, day)
		}
		return ranged(32, day*1e3)
	case *arrow.Time64Type:
		if t.Unit == arrow.Microsecond {
			return ranged(64, day*1e6)
		}
		return ranged(64, day*1e9)
	case *arrow.Date64Type:
		b := data.Buffers()[1].Bytes()
		return there(data, func(i int) error {
			if v := integer(b, i, 64, false); v%(day*1e3) != 0 {
				return wrongArray("%d ms are no whole days, as date64 has to be (a time of day needs a timestamp)", v)
			}
			return nil
		})
	case *arrow.Decimal128Type:
		b := arrow.Decimal128Traits.CastFromBytes(data.Buffers()[1].Bytes())
		return decimals(data, t, 38, func(i int) bool { return decimal128.Num(b[i]).FitsInPrecision(t.Precision) })
	case *arrow.Decimal256Type:
		b := arrow.Decimal256Traits.CastFromBytes(data.Buffers()[1].Bytes())
		return decimals(data, t, 76, func(i int) bool { return decimal256.Num(b[i]).FitsInPrecision(t.Precision) })
	}
	return nil
}

// childrenOf compares the lengths of children with their parent's.
func childrenOf(children []arrow.ArrayData, n int) error {
	for i, child := range children {
		if child.Len() < n {
			return wrongArray("field %d has %d values, its column %d", i, child.Len(), n)
		}
	}
	return nil
}

func decimals(data arrow.ArrayData, t arrow.DecimalType, most int32, fits func(i int) bool) error {
	if p := t.GetPrecision(); p < 1 || p > most {
		return wrongArray("decimals of %d digits; they have 1 to %d", p, most)
	}
	return there(data, func(i int) error {
		if !fits(i) {
			return wrongArray("a decimal of more than %d digits", t.GetPrecision())
		}
		return nil
	})
}

// checkViews checks views of texts: 12 bytes in place, or a prefix, a buffer and an offset in it.
func checkViews(data arrow.ArrayData) error {
	views, texts := data.Buffers()[1].Bytes(), data.Buffers()[2:]
	const size, inline, prefix = 16, 12, 4
	return there(data, func(i int) error {
		view := views[size*i : size*i+size]
		n := integer(view, 0, 32, false)
		if n < 0 {
			return wrongArray("a view of %d bytes", n)
		}
		if n <= inline {
			if len(bytes.Trim(view[4+n:], "\x00")) > 0 {
				return wrongArray("a view of %d bytes with more behind them", n)
			}
			return nil
		}
		buffer, at := integer(view, 2, 32, false), integer(view, 3, 32, false)
		if buffer < 0 || buffer >= int64(len(texts)) || texts[buffer] == nil || at < 0 ||
			at > int64(texts[buffer].Len())-n {
			return wrongArray("a view of %d bytes at %d of buffer %d", n, at, buffer)
		}
		if !bytes.Equal(view[4:4+prefix], texts[buffer].Bytes()[at:at+prefix]) {
			return wrongArray("a view whose text begins otherwise")
		}
		return nil
	})
}

// checkListViews checks lists of an offset and a length each.
func checkListViews(data arrow.ArrayData, bits, limit int) error {
	offsets, sizes := data.Buffers()[1].Bytes(), data.Buffers()[2].Bytes()
	for i := data.Offset(); i < data.Offset()+data.Len(); i++ {
		at, n := integer(offsets, i, bits, false), integer(sizes, i, bits, false)
		if at < 0 || n < 0 || n > int64(limit) || at > int64(limit)-n {
			return wrongArray("a list of %d values at %d, of %d", n, at, limit)
		}
	}
	return nil
}

// checkUnion checks which child has each value, and where: dense are the children of a dense one.
func checkUnion(data arrow.ArrayData, t arrow.UnionType, dense []arrow.ArrayData) error {
	last := data.Offset() + data.Len()
	codes := data.Buffers()[1].Bytes()
	if len(codes) < last || dense != nil && data.Buffers()[2].Len()/4 < last {
		return wrongArray("a union of %d values with %d types", last, len(codes))
	}
	ids, before := t.ChildIDs(), make([]int64, len(dense))
	for i := data.Offset(); i < last; i++ {
		code := int(int8(codes[i]))
		if code < 0 || code >= len(ids) || ids[code] < 0 {
			return wrongArray("a value of type %d, which its union has not", code)
		}
		if dense == nil {
			continue
		}
		child := ids[code]
		at := integer(data.Buffers()[2].Bytes(), i, 32, false)
		if at < before[child] || at >= int64(dense[child].Len()) {
			return wrongArray("value %d of a child of %d", at, dense[child].Len())
		}
		before[child] = at
	}
	return nil
}

// checkRuns checks where runs of equal values end.
func checkRuns(data arrow.ArrayData, t *arrow.RunEndEncodedType) error {
	ends, values := data.Children()[0], data.Children()[1]
	bits := t.RunEnds().(arrow.FixedWidthDataType).BitWidth()
	if ends.(*array.Data).NullN() > 0 || values.Len() < ends.Len() || ends.Len() == 0 {
		return wrongArray("%d runs of %d values", ends.Len(), values.Len())
	}
	b, before := ends.Buffers()[1].Bytes(), int64(0)
	for i := ends.Offset(); i < ends.Offset()+ends.Len(); i++ {
		end := integer(b, i, bits, false)
		if end <= before {
			return wrongArray("a run that ends at %d behind one that ends at %d", end, before)
		}
		before = end
	}
	if before < int64(data.Offset()+data.Len()) {
		return wrongArray("runs that end at %d of %d values", before, data.Offset()+data.Len())
	}
	return nil
}
