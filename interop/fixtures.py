"""Writes the Parquet files of datasets/testdata: one each by pyarrow, pandas, polars, DuckDB, and one in
old Spark's manner, with the column types that users have. Run: interop/fixtures.py FOLDER"""

import datetime as dt
import decimal
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

OUT = sys.argv[1]
MESSAGES = [
    [{"role": "system", "content": "Be brief.", "tool_calls": None}, {"role": "user", "content": "Capital of France?", "tool_calls": None}],
    None,
    [],
    [{"role": "user", "content": None, "tool_calls": [{"name": "f", "arguments": '{"x":1}'}]}],
    [{"role": "user", "content": "naïve 你好 😀", "tool_calls": []}],
]
TIME = dt.datetime(2026, 11, 29, 15, 30, 1, 250000)

tool = pa.struct([("name", pa.string()), ("arguments", pa.string())])
message = pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(tool))])
table = pa.table(
    {
        "id": pa.array(range(5), pa.int64()),
        "prompt": pa.array(["a", None, "", "naïve 你好", "e"], pa.string()),
        "large": pa.array(["l", "m", None, "o", "p"], pa.large_string()),
        "view": pa.array(["x", None, "a view that is longer than twelve bytes", "", "y"], pa.string_view()),
        "dict": pa.array(["k1", "k2", None, "k1", "k1"]).dictionary_encode(),
        "binary": pa.array([b"\x00\xff", b"", None, b"abc", b"\x80"], pa.binary()),
        "fixed": pa.array([b"ab", None, b"cd", b"ef", b"gh"], pa.binary(2)),
        "messages": pa.array(MESSAGES, pa.list_(message)),
        "matrix": pa.array([[[1, 2], []], None, [], [None, [3, None]], [[4]]], pa.list_(pa.list_(pa.int32()))),
        "map": pa.array([[("a", 1), ("b", None)], None, [], [("c", 3)], [("d", 4)]], pa.map_(pa.string(), pa.int32())),
        "nothing": pa.nulls(5),
        "flag": pa.array([True, None, False, True, True], pa.bool_()),
        "i8": pa.array([-128, 127, None, 0, 1], pa.int8()),
        "u16": pa.array([0, 65535, None, 1, 2], pa.uint16()),
        "u32": pa.array([0, 4294967295, None, 1, 2], pa.uint32()),
        "u64": pa.array([0, 2**64 - 1, None, 1, 2], pa.uint64()),
        "half": pa.array([0.5, None, -2.0, 1.0, 0.0], pa.float16()),
        "f32": pa.array([0.1, None, float("nan"), float("inf"), -0.0], pa.float32()),
        "f64": pa.array([0.1, None, 1e300, 1.0, 2.5], pa.float64()),
        "money": pa.array(
            [decimal.Decimal("1.23"), None, decimal.Decimal("-0.05"), decimal.Decimal("99999.99"), decimal.Decimal("0")],
            pa.decimal128(38, 2),
        ),
        "day": pa.array([dt.date(2026, 11, 29), None, dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(2000, 2, 29)], pa.date32()),
        "ms": pa.array([TIME, None, TIME, TIME, TIME], pa.timestamp("ms")),
        "us_utc": pa.array([TIME, None, TIME, TIME, TIME], pa.timestamp("us", "UTC")),
        "ns_paris": pa.array([TIME, None, TIME, TIME, TIME], pa.timestamp("ns", "Europe/Paris")),
        "clock": pa.array([dt.time(1, 2, 3), None, dt.time(0), dt.time(23, 59), dt.time(12)], pa.time64("us")),
        "span": pa.array([dt.timedelta(seconds=1), None, dt.timedelta(0), dt.timedelta(1), dt.timedelta(2)], pa.duration("us")),
        "params": pa.array(
            [
                {"temperature": 0.5, "max_tokens": 3, "stop": ["x"]},
                None,
                {"temperature": None, "max_tokens": None, "stop": None},
                {"temperature": 1.0, "max_tokens": 1, "stop": []},
                {"temperature": 0.0, "max_tokens": 2, "stop": None},
            ]
        ),
    }
)
required = pa.schema([f.with_nullable(f.name != "id") for f in table.schema])
pq.write_table(table.cast(required), OUT + "/pyarrow.parquet", row_group_size=2, compression="zstd", write_page_checksum=True)
plain = table.select(["id", "prompt", "large", "dict", "binary", "messages", "matrix", "flag", "f64", "money", "day", "params"])

pandas = pd.DataFrame(
    {
        "prompt": ["a", None, "c"],
        "expected": ["x", "y", "z"],
        "n": [1, 2, 1],
        "system": [None, None, None],
        "kind": pd.Categorical(["u", "v", "u"]),
        "when": pd.to_datetime(["2026-11-29"] * 3).tz_localize("UTC"),
    },
    index=pd.Index(["r0", "r1", "r2"], name="key"),
)
pandas.to_parquet(OUT + "/pandas.parquet")

pl.from_arrow(plain).with_columns(kind=pl.Series(["u", "v", "u", None, "v"], dtype=pl.Categorical)).write_parquet(
    OUT + "/polars.parquet", row_group_size=3
)

duckdb.sql(
    f"""COPY (SELECT *, [1, NULL, 3]::INT[3] AS arr, uuid '00010203-0405-0607-0809-0a0b0c0d0e0f' AS u, 'red'::ENUM('red', 'green') AS colour, 5::HUGEINT AS huge,
  '{{"a": 1}}'::JSON AS js FROM plain) TO '{OUT}/duckdb.parquet' (FORMAT parquet)"""
)

pq.write_table(
    plain.append_column("ts", table["ns_paris"].cast(pa.timestamp("ns"))),
    OUT + "/spark.parquet",
    flavor="spark",
    use_deprecated_int96_timestamps=True,
    use_compliant_nested_type=False,
    version="1.0",
    data_page_version="2.0",
    compression="snappy",
    store_schema=False,
)
