package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"

	"glmbatch/datasets/pages"
)

var errRange = errors.New("a value is out of the range of the other files' type")

// wider returns the type that holds the values of both, as DuckDB's union by name
// does, or false.
func wider(a, b leafType) (leafType, bool) {
	if a == b {
		return a, true
	}
	la, lb := a.logical, b.logical
	switch {
	case isText(a) && isText(b):
		return textType, true
	case a.isInt() && b.isInt():
		return widerInt(a, b)
	case a.isFloat() && b.isFloat():
		if a.rank() > b.rank() {
			return a, true
		}
		return b, true
	case a.isInt() && b.isFloat() && a.bits() <= 32, b.isInt() && a.isFloat() && b.bits() <= 32:
		return leafType{kind: pages.Double}, true
	case la.Class == pages.Decimal && lb.Class == pages.Decimal && la.Scale == lb.Scale:
		return widerDecimal(a, b), true
	case a.isInstant() && b.isInstant():
		t := leafType{kind: pages.Int64, logical: pages.Logical{Class: pages.Timestamp, Unit: max(a.unit(), b.unit())}}
		t.logical.UTC = la.UTC || lb.UTC
		return t, true
	case la.Class == pages.Time && lb.Class == pages.Time:
		t := leafType{kind: pages.Int64, logical: pages.Logical{Class: pages.Time, Unit: max(la.Unit, lb.Unit)}}
		if t.logical.UTC = la.UTC || lb.UTC; t.logical.Unit == pages.Millis {
			t.kind = pages.Int32
		}
		return t, true
	case a.duration != pages.NoUnit && b.duration != pages.NoUnit:
		a.duration = max(a.duration, b.duration)
		return a, true
	}
	return leafType{}, false
}

func isText(t leafType) bool {
	c := t.logical.Class
	return c == pages.String || c == pages.Enum || c == pages.JSON
}

func (t leafType) isInt() bool {
	return t.duration == pages.NoUnit && (t.logical.Class == pages.Integer || t.logical.Class == pages.Plain &&
		(t.kind == pages.Int32 || t.kind == pages.Int64))
}

func (t leafType) isFloat() bool {
	return t.kind == pages.Float || t.kind == pages.Double || t.logical.Class == pages.Half
}

// rank orders floats by their width.
func (t leafType) rank() int {
	switch t.kind {
	case pages.Double:
		return 2
	case pages.Float:
		return 1
	}
	return 0
}

func (t leafType) isInstant() bool {
	return t.logical.Class == pages.Timestamp || t.kind == pages.Int96
}

func (t leafType) unit() pages.Unit {
	if t.kind == pages.Int96 { // as Spark and Impala mean it
		return pages.Micros
	}
	return t.logical.Unit
}

func (t leafType) bits() int {
	switch {
	case t.logical.Class == pages.Integer:
		return int(t.logical.Bits)
	case t.kind == pages.Int32:
		return 32
	}
	return 64
}

func widerInt(a, b leafType) (leafType, bool) {
	bits := max(a.bits(), b.bits())
	unsigned := a.logical.Unsigned
	if a.logical.Unsigned != b.logical.Unsigned {
		u := a
		if b.logical.Unsigned {
			u = b
		}
		unsigned, bits = false, max(bits, 2*u.bits())
	}
	if bits > 64 {
		return leafType{}, false
	}
	t := leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Integer, Bits: int8(bits), Unsigned: unsigned}}
	if bits == 64 {
		t.kind = pages.Int64
	}
	if !unsigned && bits >= 32 {
		t.logical = pages.Logical{}
	}
	return t, true
}

func widerDecimal(a, b leafType) leafType {
	l := a.logical
	l.Precision = max(l.Precision, b.logical.Precision)
	switch {
	case l.Precision <= 9:
		return leafType{kind: pages.Int32, logical: l}
	case l.Precision <= 18:
		return leafType{kind: pages.Int64, logical: l}
	}
	return leafType{kind: pages.FixedLenByteArray,
		length: max(16, int32(math.Ceil((float64(l.Precision)*math.Log2(10)+1)/8))), logical: l}
}

// converter returns how values of one type become the wider one's; nil: they stay.
func converter(from, to leafType) conversion {
	switch {
	case from == to, from.kind == pages.ByteArray && to.kind == pages.ByteArray:
		return nil
	case from.isInt() && to.isInt():
		return func(dst, v []byte) ([]byte, error) {
			n := from.integer(v)
			if to.kind == pages.Int32 && !to.logical.Unsigned && int64(int32(n)) != n {
				return dst, errRange // a struct of ours may be narrower
			}
			return appendInt(dst, to, n), nil
		}
	case from.isInt() && to.isFloat():
		return func(dst, v []byte) ([]byte, error) { return appendFloat(dst, to, float64(from.integer(v))), nil }
	case from.isFloat() && to.isFloat():
		return func(dst, v []byte) ([]byte, error) { return appendFloat(dst, to, from.float(v)), nil }
	case from.logical.Class == pages.Decimal:
		return func(dst, v []byte) ([]byte, error) { return appendDecimal(dst, to, unscaled(from.kind, v)) }
	case from.kind == pages.Int96:
		return func(dst, v []byte) ([]byte, error) {
			day, ns := int96(v)
			unit := to.logical.Unit.PerSecond()
			step := 1_000_000_000 / unit
			days, ok := times(day, 86400*unit)
			if n := days + ns/step; ok && ns%step == 0 && (n >= days) == (ns >= 0) {
				return binary.LittleEndian.AppendUint64(dst, uint64(n)), nil
			}
			return dst, errRange
		}
	}
	fu, tu := from.logical.Unit, to.logical.Unit
	if from.duration != pages.NoUnit {
		fu, tu = from.duration, to.duration
	}
	factor := tu.PerSecond() / fu.PerSecond()
	return func(dst, v []byte) ([]byte, error) {
		n, ok := times(from.integer(v), factor)
		if !ok {
			return dst, errRange
		}
		return appendInt(dst, to, n), nil
	}
}

func times(a, b int64) (int64, bool) {
	c := a * b
	return c, a == 0 || c/a == b && !(a == -1 && b == math.MinInt64)
}

// narrow makes integers of 8 and 16 bits what readers take them for: some writers
// leave other bits in the 32 that a file has for them.
func narrow(t leafType) conversion {
	if !t.isShort() {
		return nil
	}
	return func(dst, v []byte) ([]byte, error) { return appendInt(dst, t, t.integer(v)), nil }
}

func (t leafType) isShort() bool {
	return t.logical.Class == pages.Integer && t.kind == pages.Int32 && t.logical.Bits < 32
}

// integer returns an integer of any width and sign; the greatest unsigned ones
// come out negative.
func (t leafType) integer(v []byte) int64 {
	switch {
	case t.isShort():
		n, unused := binary.LittleEndian.Uint32(v), 32-t.logical.Bits
		if t.logical.Unsigned {
			return int64(n << unused >> unused)
		}
		return int64(int32(n<<unused) >> unused)
	case t.kind == pages.Int64:
		return int64(binary.LittleEndian.Uint64(v))
	case t.logical.Unsigned:
		return int64(binary.LittleEndian.Uint32(v))
	}
	return int64(int32(binary.LittleEndian.Uint32(v)))
}

func (t leafType) float(v []byte) float64 {
	switch t.kind {
	case pages.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(v))
	case pages.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
	}
	return half(v)
}

func appendInt(dst []byte, t leafType, n int64) []byte {
	if t.kind == pages.Int32 {
		return binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(n))
}

func appendFloat(dst []byte, t leafType, f float64) []byte {
	if t.kind == pages.Float {
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f)))
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

// unscaled returns the integer of a decimal.
func unscaled(kind pages.Kind, v []byte) *big.Int {
	n := new(big.Int)
	switch kind {
	case pages.Int32:
		return n.SetInt64(int64(int32(binary.LittleEndian.Uint32(v))))
	case pages.Int64:
		return n.SetInt64(int64(binary.LittleEndian.Uint64(v)))
	}
	n.SetBytes(v) // big-endian two's complement
	if len(v) > 0 && v[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
	}
	return n
}

func appendDecimal(dst []byte, t leafType, n *big.Int) ([]byte, error) {
	switch {
	case t.kind != pages.FixedLenByteArray && n.IsInt64() &&
		(t.kind == pages.Int64 || int64(int32(n.Int64())) == n.Int64()):
		return appendInt(dst, t, n.Int64()), nil
	case t.kind != pages.FixedLenByteArray, n.BitLen() >= 8*int(t.length):
		return dst, fmt.Errorf("%w: a decimal", errRange)
	}
	v := n
	if n.Sign() < 0 {
		v = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*t.length)))
	}
	at := len(dst)
	dst = append(dst, make([]byte, t.length)...)
	v.FillBytes(dst[at:])
	return dst, nil
}

// int96 returns the days since 1970 and the nanoseconds of the day of Impala's and
// old Spark's timestamps.
func int96(v []byte) (day, ns int64) {
	const unixEpoch = 2440588
	return int64(binary.LittleEndian.Uint32(v[8:])) - unixEpoch, int64(binary.LittleEndian.Uint64(v))
}
