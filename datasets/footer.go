package datasets

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// maxBound is the longest minimum or maximum of a column that a footer keeps.
// The library puts whole values there, and other readers refuse a file whose
// footer holds a text of many MiB.
const maxBound = 1 << 10

// trimFooter writes the footer of a complete file again without long bounds, if
// it has any. meta is the footer that the file has.
func trimFooter(a *Aside, meta *format.FileMetaData) error {
	if !trimBounds(meta) {
		return nil
	}
	if err := a.buf.Flush(); err != nil {
		return err
	}
	size, err := a.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var tail [8]byte // length of the footer, magic
	if _, err := a.file.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	at := size - int64(len(tail)) - int64(binary.LittleEndian.Uint32(tail[:]))
	if at < int64(len(parquetMagic)) {
		return fmt.Errorf("a footer of %d bytes in a file of %d", binary.LittleEndian.Uint32(tail[:]), size)
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(tail[:], uint32(len(footer)))
	if err := a.file.Truncate(at); err != nil {
		return err
	}
	_, err = a.file.WriteAt(append(footer, tail[:]...), at)
	return err
}

// trimBounds removes long bounds, and reports whether there were any.
func trimBounds(meta *format.FileMetaData) bool {
	long := false
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			s := &meta.RowGroups[i].Columns[j].MetaData.Statistics
			if len(s.MinValue) > maxBound || len(s.MaxValue) > maxBound {
				s.MinValue, s.MaxValue = nil, nil
				long = true
			}
		}
	}
	return long
}
