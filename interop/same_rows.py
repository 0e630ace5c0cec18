"""Compares the rows of two output folders, every column, bit for bit."""

import glob
import sys

import pyarrow.parquet as pq
import pyarrow as pa


def table(folder):
    return pa.concat_tables(pq.read_table(f) for f in sorted(glob.glob(folder + "/part-*.parquet"))).combine_chunks()


a, b = table(sys.argv[1]), table(sys.argv[2])
if a.schema != b.schema:
    sys.exit(f"the schemas differ:\n{a.schema}\n{b.schema}")
for name in a.column_names:
    if a[name] != b[name]:
        sys.exit(f"column {name} differs")
print(f"{a.num_rows} rows of {a.num_columns} columns are equal")
