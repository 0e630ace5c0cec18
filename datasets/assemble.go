package datasets

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// assembler puts one nested value together from its leaf columns: the levels say
// where lists begin and what is null (the Dremel paper's record assembly).
type assembler struct {
	dst  []byte
	base int               // leaf column of cols[0]
	cols [][]parquet.Value // of this row
	pos  []int             // next value of each
	err  error             // the first
}

func (a *assembler) peek(n *node) (parquet.Value, bool) {
	i := n.first - a.base
	if i < 0 || i >= len(a.cols) || a.pos[i] >= len(a.cols[i]) {
		a.fail(errors.New("damaged nested value"))
		return parquet.Value{}, false
	}
	return a.cols[i][a.pos[i]], true
}

func (a *assembler) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// skip passes over the one value that stands for a null in each leaf below n.
func (a *assembler) skip(n *node) {
	for i := range n.leaves {
		a.pos[n.first-a.base+i]++
	}
}

// value appends the value of n, whose parent is at repetition level rep, and
// returns false if it is null: then nothing was appended.
func (a *assembler) value(n *node, rep int) bool {
	if n.leaves == 0 { // an empty struct has no column to say anything
		a.dst = append(a.dst, "{}"...)
		return true
	}
	v, ok := a.peek(n)
	if !ok {
		return false
	}
	switch {
	case n.rep == repeated:
		a.list(n, n, rep)
		return true
	case n.rep == optional && v.DefinitionLevel() < n.maxDef:
		a.skip(n)
		return false
	}
	return a.present(n, rep)
}

func (a *assembler) present(n *node, rep int) bool {
	switch {
	case n.leaf:
		v, _ := a.peek(n)
		a.skip(n)
		if v.IsNull() {
			return false
		}
		a.scalar(n, v)
		return true
	case len(n.fields) == 1 && n.child(0).rep == repeated && isLogical(n, "LIST"):
		a.list(n.child(0), element(n.child(0)), rep)
	case len(n.fields) == 1 && n.child(0).rep == repeated && len(n.child(0).fields) == 2 && isLogical(n, "MAP"):
		a.entries(n.child(0), rep)
	default:
		a.object(n, rep)
	}
	return true
}

// element returns what a list's repeated field holds: three-level lists wrap the
// element, two-level lists are the element.
func element(rep *node) *node {
	if !rep.leaf && len(rep.fields) == 1 && rep.name != "array" {
		return rep.child(0)
	}
	return rep
}

func (a *assembler) list(n, elem *node, rep int) {
	a.dst = append(a.dst, '[')
	first := true
	a.each(n, rep, func() {
		if !first {
			a.dst = append(a.dst, ',')
		}
		first = false
		ok := false
		if elem == n {
			ok = a.present(elem, rep+1)
		} else {
			ok = a.value(elem, rep+1)
		}
		if !ok {
			a.dst = append(a.dst, "null"...)
		}
	})
	a.dst = append(a.dst, ']')
}

// each calls f at each element of the repeated node n.
func (a *assembler) each(n *node, rep int, f func()) {
	v, ok := a.peek(n)
	if !ok {
		return
	}
	if v.DefinitionLevel() < n.maxDef {
		a.skip(n)
		return
	}
	i := n.first - a.base
	for {
		before := a.pos[i]
		f()
		if a.err != nil || a.pos[i] >= len(a.cols[i]) || a.cols[i][a.pos[i]].RepetitionLevel() != rep+1 || a.pos[i] == before {
			return
		}
	}
}

func (a *assembler) entries(n *node, rep int) {
	a.dst = append(a.dst, '{')
	first := true
	a.each(n, rep, func() {
		if !first {
			a.dst = append(a.dst, ',')
		}
		first = false
		start := len(a.dst)
		if !a.value(n.child(0), rep+1) {
			a.dst = append(a.dst, `""`...)
		} else if a.dst[start] != '"' { // keys of objects are strings
			key := slices.Clone(a.dst[start:])
			a.dst = a.dst[:start]
			a.quote(key)
		}
		a.dst = append(a.dst, ':')
		if !a.value(n.child(1), rep+1) {
			a.dst = append(a.dst, "null"...)
		}
	})
	a.dst = append(a.dst, '}')
}

func (a *assembler) object(n *node, rep int) {
	a.dst = append(a.dst, '{')
	first := true
	for i := range n.fields {
		c := n.child(i)
		start := len(a.dst)
		if !first {
			a.dst = append(a.dst, ',')
		}
		a.quote([]byte(c.name))
		a.dst = append(a.dst, ':')
		if !a.value(c, rep) {
			a.dst = a.dst[:start]
			continue
		}
		first = false
	}
	a.dst = append(a.dst, '}')
}

func (a *assembler) quote(s []byte) {
	if !utf8.Valid(s) {
		a.fail(ErrUTF8)
		return
	}
	for _, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			q, err := json.Marshal(string(s))
			if err != nil {
				a.fail(err)
			}
			a.dst = append(a.dst, q...)
			return
		}
	}
	a.dst = append(append(append(a.dst, '"'), s...), '"')
}

func (a *assembler) scalar(n *node, v parquet.Value) {
	if lt := n.typ.LogicalType(); lt != nil && a.logical(lt, v) {
		return
	}
	if v.Kind() == parquet.FixedLenByteArray && len(v.ByteArray()) == 2 && isHalf(n) {
		a.float(half(v.ByteArray()), 32)
		return
	}
	switch v.Kind() {
	case parquet.Boolean:
		a.dst = strconv.AppendBool(a.dst, v.Boolean())
	case parquet.Int32:
		a.dst = strconv.AppendInt(a.dst, int64(v.Int32()), 10)
	case parquet.Int64:
		a.dst = strconv.AppendInt(a.dst, v.Int64(), 10)
	case parquet.Float:
		a.float(float64(v.Float()), 32)
	case parquet.Double:
		a.float(v.Double(), 64)
	case parquet.Int96:
		a.time(int96Time(v.Int96()))
	case parquet.ByteArray:
		if s := v.ByteArray(); n.typ.LogicalType() != nil || utf8.Valid(s) {
			a.quote(s)
			return
		}
		fallthrough
	default:
		a.quote([]byte(base64.StdEncoding.EncodeToString(v.Bytes())))
	}
}

func (a *assembler) float(f float64, bits int) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		a.quote(strconv.AppendFloat(nil, f, 'g', -1, bits)) // JSON has no such numbers
		return
	}
	a.dst = strconv.AppendFloat(a.dst, f, 'g', -1, bits)
}

func (a *assembler) time(t time.Time) {
	a.dst = append(a.dst, '"')
	a.dst = t.UTC().AppendFormat(a.dst, "2006-01-02T15:04:05.999999999Z07:00")
	a.dst = append(a.dst, '"')
}

// logical appends values whose logical type changes how they read.
func (a *assembler) logical(lt *format.LogicalType, v parquet.Value) bool {
	switch t := lt.Value.(type) {
	case *format.IntType:
		if t.IsSigned {
			return false
		}
		u := v.Uint64()
		if v.Kind() == parquet.Int32 {
			u = uint64(v.Uint32())
		}
		a.dst = strconv.AppendUint(a.dst, u, 10)
	case *format.DecimalType:
		a.decimal(int(t.Scale), v)
	case *format.DateType:
		a.quote([]byte(time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly)))
	case *format.TimestampType:
		a.time(timestamp(t.Unit, v.Int64()))
	default:
		return false
	}
	return true
}

func timestamp(unit format.TimeUnit, v int64) time.Time {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(v)
	case *format.MicroSeconds:
		return time.UnixMicro(v)
	}
	return time.Unix(0, v)
}

func (a *assembler) decimal(scale int, v parquet.Value) {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		n.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		n.SetInt64(v.Int64())
	default: // big-endian two's complement
		b := v.ByteArray()
		n.SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	if scale <= 0 || scale > 100 {
		a.dst = n.Append(a.dst, 10)
		return
	}
	if n.Sign() < 0 {
		a.dst = append(a.dst, '-')
		n.Neg(n)
	}
	digits := n.String()
	digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
	a.dst = append(append(append(a.dst, digits[:len(digits)-scale]...), '.'), digits[len(digits)-scale:]...)
}

// int96Time is Impala's and old Spark's timestamp: nanoseconds of the day, then the Julian day.
func int96Time(v deprecated.Int96) time.Time {
	const unixEpoch = 2440588
	return time.Unix((int64(v[2])-unixEpoch)*86400, int64(uint64(v[1])<<32|uint64(v[0]))).UTC()
}

func plainInt(t parquet.Type) bool {
	lt := t.LogicalType()
	if lt == nil {
		return true
	}
	_, ok := lt.Value.(*format.IntType)
	return ok
}

func logicalName(lt *format.LogicalType) string {
	switch lt.Value.(type) {
	case *format.StringType:
		return "STRING"
	case *format.ListType:
		return "LIST"
	case *format.MapType:
		return "MAP"
	case *format.EnumType:
		return "ENUM"
	case *format.JsonType:
		return "JSON"
	}
	return ""
}
