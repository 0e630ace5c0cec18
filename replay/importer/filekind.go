package importer

import "bytes"

// kindOfFile says what a file is that is no trace; "": nothing that is known.
func kindOfFile(head []byte) string {
	for _, k := range []struct {
		at         int
		magic, say string
	}{
		{0, "PK\x03\x04", "a zip archive: unpack it and import the traces inside"},
		{0, "SQLite format 3\x00", "an SQLite file: nsys exports are read by import nsys"},
		{257, "ustar", "a tar archive: unpack it and import the traces inside"},
		{0, "\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first (zstd -d)"},
		{0, "\xfd7zXZ\x00", "compressed with xz: unpack it first (xz -d)"},
		{0, "BZh", "compressed with bzip2: unpack it first (bzip2 -d)"},
		{0, "PAR1",
			"a Parquet file: folders of an nsys parquetdir export are read by import nsys, timelines by report"},
		{0, "ARROW1", "an Arrow file: folders of an nsys arrowdir export are read by import nsys"},
	} {
		if len(head) >= k.at+len(k.magic) && string(head[k.at:k.at+len(k.magic)]) == k.magic {
			return k.say
		}
	}
	switch {
	case len(head) > 2 && head[0] == 0x0a && bytes.Contains(head, []byte("/device:")) ||
		bytes.Contains(head, []byte("/host:CPU")):
		return "an XPlane profile of TensorFlow or JAX (.xplane.pb): write its trace as JSON first (trace.json.gz " +
			"lies beside it)"
	case len(head) > 2 && head[0] == 0x0a:
		return "a Perfetto trace (.pftrace) or another protobuf: write it as JSON first (traceconv json)"
	}
	return ""
}
