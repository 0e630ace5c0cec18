package pages

// A shape is a struct of parquet.thrift: the fields that readers know, and those that it must
// have. A field of another type than its own is skipped, as Thrift's own readers do, and so
// counts as missing.
type shape struct {
	members  []member
	required []need
}

type member struct {
	id   int64
	typ  byte
	item byte   // what a list has
	of   string // the shape of a struct, or of a list's
	must bool
}

func shapeOf(members ...member) shape {
	s := shape{members: members}
	for _, m := range members {
		if m.must {
			s.required = append(s.required, need{m.id, m.typ})
		}
	}
	return s
}

func may(id int64, typ byte) member     { return member{id: id, typ: typ} }
func must(id int64, typ byte) member    { return member{id: id, typ: typ, must: true} }
func mayBe(id int64, of string) member  { return member{id: id, typ: thriftStruct, of: of} }
func mustBe(id int64, of string) member { return member{id: id, typ: thriftStruct, of: of, must: true} }
func mayList(id int64, of string) member {
	return member{id: id, typ: thriftList, item: thriftStruct, of: of}
}
func mayItems(id int64, item byte) member { return member{id: id, typ: thriftList, item: item} }
func mustItems(id int64, item byte) member {
	return member{id: id, typ: thriftList, item: item, must: true}
}
func mustList(id int64, of string) (m member) { m = mayList(id, of); m.must = true; return m }

// shapes are the structs of a footer and of page headers. Booleans are thriftTrue.
var shapes = map[string]shape{
	"FileMetaData": shapeOf(must(1, thriftI32), mustList(2, "SchemaElement"), must(3, thriftI64),
		mustList(4, "RowGroup"), mayList(5, "KeyValue"), may(6, thriftBinary), mayList(7, "ColumnOrder"),
		mayBe(8, "EncryptionAlgorithm"), may(9, thriftBinary)),
	"SchemaElement": shapeOf(may(1, thriftI32), may(2, thriftI32), may(3, thriftI32), must(4, thriftBinary),
		may(5, thriftI32), may(6, thriftI32), may(7, thriftI32), may(8, thriftI32), may(9, thriftI32),
		mayBe(10, "LogicalType")),
	"LogicalType": shapeOf(mayBe(1, "Empty"), mayBe(2, "Empty"), mayBe(3, "Empty"), mayBe(4, "Empty"),
		mayBe(5, "DecimalType"), mayBe(6, "Empty"), mayBe(7, "TimeType"), mayBe(8, "TimeType"), mayBe(10, "IntType"),
		mayBe(11, "Empty"), mayBe(12, "Empty"), mayBe(13, "Empty"), mayBe(14, "Empty"), mayBe(15, "Empty"),
		mayBe(16, "VariantType"), mayBe(17, "GeometryType"), mayBe(18, "GeometryType")),
	"Empty":        shapeOf(),
	"DecimalType":  shapeOf(must(1, thriftI32), must(2, thriftI32)),
	"TimeType":     shapeOf(must(1, thriftTrue), mustBe(2, "TimeUnit")), // and TimestampType
	"TimeUnit":     shapeOf(mayBe(1, "Empty"), mayBe(2, "Empty"), mayBe(3, "Empty")),
	"IntType":      shapeOf(must(1, thriftI8), must(2, thriftTrue)),
	"VariantType":  shapeOf(may(1, thriftI8)),
	"GeometryType": shapeOf(may(1, thriftBinary), may(2, thriftI32)), // and GeographyType
	"KeyValue":     shapeOf(must(1, thriftBinary), may(2, thriftBinary)),
	"ColumnOrder":  shapeOf(mayBe(1, "Empty"), mayBe(2, "Empty"), mayBe(3, "Empty")),
	"RowGroup": shapeOf(mustList(1, "ColumnChunk"), must(2, thriftI64), must(3, thriftI64), mayList(4, "SortingColumn"),
		may(5, thriftI64), may(6, thriftI64), may(7, thriftI16)),
	"SortingColumn": shapeOf(must(1, thriftI32), must(2, thriftTrue), must(3, thriftTrue)),
	"ColumnChunk": shapeOf(may(1, thriftBinary), must(2, thriftI64), mayBe(3, "ColumnMetaData"), may(4, thriftI64),
		may(5, thriftI32), may(6, thriftI64), may(7, thriftI32), mayBe(8, "ColumnCryptoMetaData"),
		may(9, thriftBinary)),
	"ColumnMetaData": shapeOf(must(1, thriftI32), mustItems(2, thriftI32), mustItems(3, thriftBinary),
		must(4, thriftI32),
		must(5, thriftI64), must(6, thriftI64), must(7, thriftI64), mayList(8, "KeyValue"), must(9, thriftI64),
		may(10, thriftI64), may(11, thriftI64), mayBe(12, "Statistics"), mayList(13, "PageEncodingStats"),
		may(14, thriftI64), may(15, thriftI32), mayBe(16, "SizeStatistics"), mayBe(17, "GeospatialStatistics")),
	"Statistics": shapeOf(may(1, thriftBinary), may(2, thriftBinary), may(3, thriftI64), may(4, thriftI64),
		may(5, thriftBinary), may(6, thriftBinary), may(7, thriftTrue), may(8, thriftTrue)),
	"PageEncodingStats":    shapeOf(must(1, thriftI32), must(2, thriftI32), must(3, thriftI32)),
	"SizeStatistics":       shapeOf(may(1, thriftI64), mayItems(2, thriftI64), mayItems(3, thriftI64)),
	"GeospatialStatistics": shapeOf(mayBe(1, "BoundingBox"), mayItems(2, thriftI32)),
	"BoundingBox": shapeOf(must(1, thriftDouble), must(2, thriftDouble), must(3, thriftDouble), must(4, thriftDouble),
		may(5, thriftDouble), may(6, thriftDouble), may(7, thriftDouble), may(8, thriftDouble)),
	"ColumnCryptoMetaData":    shapeOf(mayBe(1, "Empty"), mayBe(2, "EncryptionWithColumnKey")),
	"EncryptionWithColumnKey": shapeOf(mustItems(1, thriftBinary), may(2, thriftBinary)),
	"EncryptionAlgorithm":     shapeOf(mayBe(1, "AesGcm"), mayBe(2, "AesGcm")),
	"AesGcm":                  shapeOf(may(1, thriftBinary), may(2, thriftBinary), may(3, thriftTrue)),

	"PageHeader": shapeOf(must(1, thriftI32), must(2, thriftI32), must(3, thriftI32), may(4, thriftI32),
		mayBe(5, "DataPageHeader"), mayBe(6, "Empty"), mayBe(7, "DictionaryPageHeader"), mayBe(8, "DataPageHeaderV2")),
	"DataPageHeader": shapeOf(must(1, thriftI32), must(2, thriftI32), must(3, thriftI32), must(4, thriftI32),
		mayBe(5, "Statistics")),
	"DictionaryPageHeader": shapeOf(must(1, thriftI32), must(2, thriftI32), may(3, thriftTrue)),
	"DataPageHeaderV2": shapeOf(must(1, thriftI32), must(2, thriftI32), must(3, thriftI32), must(4, thriftI32),
		must(5, thriftI32), must(6, thriftI32), may(7, thriftTrue), mayBe(8, "Statistics")),
}

// verify walks a struct and all that is in it, which must have their shapes.
func (t *thriftReader) verify(name string) {
	s := shapes[name]
	t.fields(func(id int64, typ byte) bool {
		m := s.member(id, typ)
		switch {
		case m == nil:
			return false
		case m.typ == thriftStruct:
			t.verify(m.of)
		case m.typ == thriftList && m.of != "":
			t.list(m.item, func() { t.verify(m.of) })
		case m.typ == thriftList:
			t.list(m.item, func() { t.skip(m.item, true) })
		case m.typ == thriftI32:
			t.i32()
		default:
			return false
		}
		return true
	}, s.required...)
}

// member returns the field that has the id and the type; nil: there is none.
func (s shape) member(id int64, typ byte) *member {
	if typ == thriftFalse {
		typ = thriftTrue
	}
	for i := range s.members {
		if m := &s.members[i]; m.id == id && m.typ == typ {
			return m
		}
	}
	return nil
}
