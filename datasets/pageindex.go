package datasets

import "github.com/parquet-go/parquet-go"

// NewColumnIndexer keeps of a page's bounds what the file will have of them. The library
// cuts them when the file ends, and holds on to all of their bytes until then: of large
// values that is twice the file.
func (t ownPages) NewColumnIndexer(limit int) parquet.ColumnIndexer {
	i := t.Type.NewColumnIndexer(limit)
	if t.Kind() != parquet.ByteArray || limit <= 0 {
		return i
	}
	return shortIndexer{i, limit + 1} // one more: the library sees that there was more
}

type shortIndexer struct {
	parquet.ColumnIndexer
	most int
}

func (s shortIndexer) IndexPage(values, nulls int64, low, high parquet.Value) {
	s.ColumnIndexer.IndexPage(values, nulls, s.short(low), s.short(high))
}

func (s shortIndexer) short(v parquet.Value) parquet.Value {
	if v.Kind() != parquet.ByteArray || len(v.ByteArray()) <= s.most {
		return v
	}
	return parquet.ByteArrayValue(v.ByteArray()[:s.most])
}
