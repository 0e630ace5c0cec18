package pages

import "fmt"

// Class is what the values of an element mean.
type Class uint8

// The classes. Plain values mean what their physical type does.
const (
	Plain Class = iota
	String
	Enum
	JSON
	BSON
	Integer
	Decimal
	Date
	Time
	Timestamp
	Interval
	UUID
	Half
	Null // a column of nulls, whose type nobody knew
	List
	Map
	MapEntry
	Unknown // newer than this package
)

// Unit is a unit of time.
type Unit uint8

// The units, from coarse to fine.
const (
	NoUnit Unit = iota
	Seconds
	Millis
	Micros
	Nanos
)

// PerSecond is how many of the unit make a second.
func (u Unit) PerSecond() int64 {
	return [...]int64{1, 1, 1_000, 1_000_000, 1_000_000_000}[u]
}

func (u Unit) String() string { return [...]string{"", "s", "ms", "us", "ns"}[u] }

// Logical is the meaning of an element's values. Equal meanings are equal values,
// whichever of the format's two annotations said them.
type Logical struct {
	Class            Class
	Bits             int8 // of integers
	Unsigned         bool
	Precision, Scale int32 // of decimals
	Unit             Unit  // of times and timestamps
	UTC              bool
}

func (l Logical) String() string {
	switch l.Class {
	case Integer:
		return fmt.Sprintf("INT(%d,%t)", l.Bits, !l.Unsigned)
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", l.Precision, l.Scale)
	case Time, Timestamp:
		zone := ""
		if l.UTC {
			zone = ",UTC"
		}
		return fmt.Sprintf("%s(%s%s)", [...]string{"TIME", "TIMESTAMP"}[l.Class-Time], l.Unit, zone)
	}
	return [...]string{"", "STRING", "ENUM", "JSON", "BSON", "", "", "DATE", "", "", "INTERVAL", "UUID", "FLOAT16",
		"NULL", "LIST", "MAP", "MAP", "UNKNOWN"}[l.Class]
}

// converted are the meanings of the format's older annotation.
var converted = map[int32]Logical{
	0: {Class: String}, 1: {Class: Map}, 2: {Class: MapEntry}, 3: {Class: List}, 4: {Class: Enum}, 5: {Class: Decimal},
	6: {Class: Date},
	7: {Class: Time, Unit: Millis, UTC: true}, 8: {Class: Time, Unit: Micros, UTC: true},
	9: {Class: Timestamp, Unit: Millis, UTC: true}, 10: {Class: Timestamp, Unit: Micros, UTC: true},
	11: {Class: Integer, Bits: 8, Unsigned: true}, 12: {Class: Integer, Bits: 16, Unsigned: true},
	13: {Class: Integer, Bits: 32, Unsigned: true}, 14: {Class: Integer, Bits: 64, Unsigned: true},
	15: {Class: Integer, Bits: 8}, 16: {Class: Integer, Bits: 16}, 17: {Class: Integer, Bits: 32}, 18: {Class: Integer,
		Bits: 64},
	19: {Class: JSON}, 20: {Class: BSON}, 21: {Class: Interval},
}

var logicals = map[int64]Class{
	1: String, 2: Map, 3: List, 4: Enum, 5: Decimal, 6: Date, 7: Time, 8: Timestamp, 10: Integer, 11: Null, 12: JSON,
	13: BSON, 14: UUID, 15: Half,
}

var kindNames = map[Kind]string{Group: "columns", Boolean: "BOOLEAN", Int32: "INT32", Int64: "INT64", Int96: "INT96",
	Float: "FLOAT", Double: "DOUBLE", ByteArray: "BYTE_ARRAY", FixedLenByteArray: "FIXED_LEN_BYTE_ARRAY"}

// laterLogicals are annotations that this package passes through as they are: VARIANT,
// GEOMETRY and GEOGRAPHY.
var laterLogicals = map[int64]bool{16: true, 17: true, 18: true}

// Logical returns what the element's annotations say. An annotation that does
// not fit the physical type says nothing.
func (e *Element) Logical() Logical {
	var old, l Logical
	var precision, scale int32
	t := thriftReader{b: e.Raw}
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 6 && typ == thriftI32:
			old = converted[t.i32()]
		case id == 7 && typ == thriftI32:
			scale = t.i32()
		case id == 8 && typ == thriftI32:
			precision = t.i32()
		case id == 10 && typ == thriftStruct:
			l = t.logical()
		default:
			return false
		}
		return true
	})
	if old.Class == Decimal {
		old.Precision, old.Scale = precision, scale
	}
	if l.Class == Plain || l.Class == Unknown && old.Class != Plain {
		l = old
	}
	// Bare integers say the same as integers of their own width.
	if l == (Logical{Class: Integer, Bits: 32}) && e.Kind == Int32 || l == (Logical{Class: Integer, Bits: 64}) &&
		e.Kind == Int64 {
		return Logical{}
	}
	if !l.fits(e) {
		return Logical{}
	}
	return l
}

// checkAnnotations refuses annotations that the format cannot have, or not of the element's
// type: what its values mean is not known, and no other reader opens a file with them.
func (e *Element) checkAnnotations() error {
	var old, l Logical
	var number, precision, scale int32
	has, union := false, int64(0)
	t := thriftReader{b: e.Raw}
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 6 && typ == thriftI32:
			number = t.i32()
			old = converted[number]
			has = true
		case id == 7 && typ == thriftI32:
			scale = t.i32()
		case id == 8 && typ == thriftI32:
			precision = t.i32()
		case id == 10 && typ == thriftStruct:
			union = -1
			at := t
			at.fields(func(id int64, typ byte) bool {
				if typ == thriftStruct {
					union = id
				}
				return false
			})
			l = t.logical()
		default:
			return false
		}
		return true
	})
	if old.Class == Decimal {
		old.Precision, old.Scale = precision, scale
	}
	switch {
	case has && old == (Logical{}):
		return damaged("column %q has the converted type %d", e.Name, number)
	case l.Class == Integer && l.Bits != 8 && l.Bits != 16 && l.Bits != 32 && l.Bits != 64:
		return damaged("column %q has integers of %d bits", e.Name, l.Bits)
	case union < 0 || union > 0 && logicals[union] == Plain && !laterLogicals[union]:
		return unsupported("the logical type %d of column %q", union, e.Name)
	case union > 0 && !l.fits(e), union == 0 && has && !old.fits(e):
		if union == 0 {
			l = old
		}
		return damaged("column %q of %s is no %s", e.Name, kindNames[e.Kind], l)
	}
	return nil
}

func (l Logical) fits(e *Element) bool {
	switch l.Class {
	case String, Enum, JSON, BSON:
		return e.Kind == ByteArray
	case Integer:
		return e.Kind == Int32 && l.Bits <= 32 && l.Bits > 0 || e.Kind == Int64 && l.Bits == 64
	case Decimal:
		return (e.Kind == Int32 || e.Kind == Int64 || e.Kind == ByteArray || e.Kind == FixedLenByteArray) &&
			l.Precision > 0 && l.Scale >= 0 && l.Scale <= l.Precision
	case Date:
		return e.Kind == Int32
	case Time:
		return e.Kind == Int32 && l.Unit == Millis || e.Kind == Int64 && l.Unit > Millis
	case Timestamp:
		return e.Kind == Int64 && l.Unit >= Millis
	case Interval:
		return e.Kind == FixedLenByteArray && e.Length == 12
	case UUID:
		return e.Kind == FixedLenByteArray && e.Length == 16
	case Half:
		return e.Kind == FixedLenByteArray && e.Length == 2
	case List, Map, MapEntry:
		return e.Kind == Group
	}
	return true
}

func (t *thriftReader) logical() (l Logical) {
	t.fields(func(id int64, typ byte) bool {
		if typ != thriftStruct {
			return false
		}
		class, known := logicals[id]
		if !known {
			class = Unknown
		}
		l = Logical{Class: class}
		t.fields(func(sub int64, typ byte) bool {
			switch {
			case class == Decimal && sub == 1 && typ == thriftI32:
				l.Scale = t.i32()
			case class == Decimal && sub == 2 && typ == thriftI32:
				l.Precision = t.i32()
			case class == Integer && sub == 1 && typ == thriftI8:
				l.Bits = int8(t.byte())
			case class == Integer && sub == 2 && (typ == thriftTrue || typ == thriftFalse):
				l.Unsigned = typ == thriftFalse
			case (class == Time || class == Timestamp) && sub == 1 && (typ == thriftTrue || typ == thriftFalse):
				l.UTC = typ == thriftTrue
			case (class == Time || class == Timestamp) && sub == 2 && typ == thriftStruct:
				t.fields(func(unit int64, typ byte) bool {
					if unit >= 1 && unit <= 3 {
						l.Unit = Millis + Unit(unit-1)
					}
					return false
				})
			default:
				return false
			}
			return true
		})
		return true
	})
	return l
}
