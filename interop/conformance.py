"""Writes Parquet files with every codec, encoding, page version, type and nesting that five writers have, passes them
through glmbatch's reader and writer, and compares value by value, type by type and statistic by statistic with pyarrow.
Run: interop/conformance.py FOLDER PASS PROGRAM, where PASS is the datasets package's test program. One file of each
writer goes through a job of PROGRAM too (JOBS=all: all of them). With GLMBATCH_PARQUET_FILES naming a folder, every
.parquet file below it is tried too. Prints cells tried, equal, and refused with reasons."""

import collections
import datetime as dt
import decimal
import glob
import math
import os
import shutil
import subprocess
import sys

import duckdb
import fastparquet
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

WORK, PASS, PROGRAM = sys.argv[1:4]
IN, OUT = os.path.join(WORK, "in"), os.path.join(WORK, "out")
D = decimal.Decimal
ROWS = 70


def column(values, kind):
    """ROWS values, with nulls among them."""
    return pa.array([None if i % 7 == 3 else values[i % len(values)] for i in range(ROWS)], kind)


def times(unit):
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return [0, -1, 1_700_000_000 * scale + 123 % scale, -2_000_000_000 * scale, 4_000_000_000 * scale + scale // 2]


FLAT = {
    "bool": column([True, False, False, True, True], pa.bool_()),
    "i8": column([-128, 127, 0, -1], pa.int8()),
    "i16": column([-32768, 32767, 0, -1], pa.int16()),
    "i32": column([-(2**31), 2**31 - 1, 0, -1, 7], pa.int32()),
    "i64": column([-(2**63), 2**63 - 1, 0, -1, 7], pa.int64()),
    "u8": column([0, 255, 1], pa.uint8()),
    "u16": column([0, 65535, 1], pa.uint16()),
    "u32": column([0, 2**32 - 1, 1, 2**31], pa.uint32()),
    "u64": column([0, 2**64 - 1, 1, 2**63], pa.uint64()),
    "f16": column([np.float16(x) for x in (0.5, -2.0, 0.0, 65504.0)], pa.float16()),
    "f32": column([0.5, -2.25, 0.0, 3.4e38, -0.0], pa.float32()),
    "f64": column([0.1, -2.25, 0.0, 1e300, math.inf], pa.float64()),
    "nan": column([0.1, math.nan, -5.0], pa.float64()),
    "text": column(["", "a", "naïve 你好", "z" * 40, "aa"], pa.string()),
    "same": column(["x"], pa.string()),
    "large": column(["l", "", "m" * 3000], pa.large_string()),
    "view": column(["v", "a view that is longer than twelve bytes"], pa.string_view()),
    "dict": column(["k1", "k2", "k1"], pa.string()).dictionary_encode(),
    "bytes": column([b"", b"\x00\xff", b"abc"], pa.binary()),
    "fixed": column([b"abcd", b"\xff\x00\x01\x02", b"\x00\x00\x00\x00"], pa.binary(4)),
    "dec5": column([D("1.23"), D("-999.99"), D("0")], pa.decimal128(5, 2)),
    "dec15": column([D("1.234"), D("-999999999999.999"), D("5")], pa.decimal128(15, 3)),
    "dec38": column([D("1.23"), D("-123456789012345678901234567890.12"), D("7")], pa.decimal128(38, 2)),
    "dec60": column([D("1.23"), D("-1234567890123456789012345678901234567890.12"), D("7")], pa.decimal256(60, 2)),
    "date": column([dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2026, 11, 29), dt.date(9999, 12, 31)], pa.date32()),
    "time_ms": column([dt.time(0), dt.time(23, 59, 59, 999000), dt.time(12)], pa.time32("ms")),
    "time_us": column([dt.time(0), dt.time(23, 59, 59, 999999)], pa.time64("us")),
    "time_ns": column([0, 86_399_999_999_999], pa.time64("ns")),
    "ts_s": column(times("s"), pa.timestamp("s")),
    "ts_ms": column(times("ms"), pa.timestamp("ms")),
    "ts_us": column(times("us"), pa.timestamp("us", "UTC")),
    "ts_ns": column(times("ns"), pa.timestamp("ns", "Europe/Paris")),
    "dur": column([0, -1, 10**9], pa.duration("ms")),
    "null": pa.nulls(ROWS),
    "dec32": column([D("1.2"), D("-9.9")], pa.decimal32(4, 1)),
}


def nested():
    item = pa.struct([("role", pa.string()), ("n", pa.list_(pa.int32())), ("flag", pa.bool_())])
    some = [{"role": "user", "n": [1, None, 3], "flag": True}, None, {"role": None, "n": [], "flag": None}, {"role": "", "n": None, "flag": False}]
    return {
        "list": column([[1, 2, None], [], [3], [None]], pa.list_(pa.int64())),
        "lists": column([[[1], [], None, [2, None]], [], [[]]], pa.list_(pa.list_(pa.int32()))),
        "bools": column([[True, None, False] * 5, []], pa.list_(pa.bool_())),
        "texts": column([["a", None, "", "b" * 50], []], pa.list_(pa.string())),
        "floats": column([[0.5, -1.0, 2.0], [1.0, 2.0, 3.0]], pa.list_(pa.float32(), 3)),
        "struct": column([{"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}, {"a": 2, "b": {"c": None}}], pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])),
        "messages": column([some, [], some[:1], some[1:]], pa.list_(item)),
        "map": column([[("a", 1), ("b", None)], [], [("c", 3)]], pa.map_(pa.string(), pa.int64())),
        "maps": column([[[("a", [D("1.5")])], []], None, [None]], pa.list_(pa.map_(pa.string(), pa.list_(pa.decimal128(20, 1))))),
        "list_null": column([[None], []], pa.list_(pa.null())),
    }


TABLE = pa.table({**FLAT, **nested()})
REQUIRED = {n: pc.fill_null(TABLE[n], FLAT[n][0]) for n in ("bool", "i32", "i64", "u32", "f32", "f64", "text", "bytes", "date", "ts_us", "dec38", "fixed")}
REQUIRED = pa.table(list(REQUIRED.values()), schema=pa.schema([pa.field(n, c.type, nullable=False) for n, c in REQUIRED.items()]))
ENCODINGS = {
    "DELTA_BINARY_PACKED": ["i8", "i16", "i32", "i64", "u32", "u64", "ts_us", "date", "time_us"],
    "DELTA_LENGTH_BYTE_ARRAY": ["text", "large", "bytes"],
    "DELTA_BYTE_ARRAY": ["text", "large", "bytes", "fixed", "dec38"],
    "BYTE_STREAM_SPLIT": ["i32", "i64", "f16", "f32", "f64", "fixed", "ts_us", "dec38"],
    "RLE": ["bool"],
    "PLAIN": [n for n in FLAT if n not in ("null", "dict")],
}


def pyarrow_files(write):
    for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        for version in ("1.0", "2.0"):
            write(f"pyarrow {codec} pages {version}", lambda p: pq.write_table(TABLE, p, compression=codec, data_page_version=version, row_group_size=33))
            write(f"pyarrow {codec} pages {version} plain", lambda p: pq.write_table(TABLE, p, compression=codec, data_page_version=version, use_dictionary=False, data_page_size=64, write_page_checksum=True))
    for version in ("1.0", "2.0"):
        write(f"pyarrow required pages {version}", lambda p: pq.write_table(REQUIRED, p, data_page_version=version))
        for encoding, names in ENCODINGS.items():
            part = TABLE.select(sorted({"text", *names}))  # the jobs' prompts
            chosen = {n: encoding for n in names}
            write(f"pyarrow {encoding} pages {version}", lambda p: pq.write_table(part, p, use_dictionary=False, column_encoding=chosen, data_page_version=version, data_page_size=100))
            part = REQUIRED.select([n for n in part.column_names if n in REQUIRED.column_names])
            chosen = {n: encoding for n in part.column_names if n in names}
            write(f"pyarrow {encoding} required {version}", lambda p: pq.write_table(part, p, use_dictionary=False, column_encoding=chosen, data_page_version=version))
        write(f"pyarrow tiny dictionary pages {version}", lambda p: pq.write_table(TABLE, p, dictionary_pagesize_limit=64, write_batch_size=8, data_page_size=32, data_page_version=version))
        write(f"pyarrow no rows {version}", lambda p: pq.write_table(TABLE.slice(0, 0), p, data_page_version=version))
    write("pyarrow old lists", lambda p: pq.write_table(TABLE, p, use_compliant_nested_type=False, version="1.0"))
    write("pyarrow int96", lambda p: pq.write_table(TABLE.select(["text", "ts_us", "ts_ms", "i32"]), p, use_deprecated_int96_timestamps=True))
    write("pyarrow no schema", lambda p: pq.write_table(TABLE, p, store_schema=False))
    write("pyarrow decimals as integers", lambda p: pq.write_table(TABLE.select(["text", "dec5", "dec15", "dec38"]), p, store_decimal_as_integer=True))

    def empty_groups(p):
        with pq.ParquetWriter(p, TABLE.schema) as w:
            for part in (TABLE, TABLE.slice(0, 0), TABLE, TABLE.slice(0, 0)):
                w.write_table(part, row_group_size=None if part.num_rows else 1)

    write("pyarrow empty row groups", empty_groups)


def duckdb_files(write):
    no = ("floats", "f16", "dec60", "null", "list_null", "view", "dec32", "dur", "maps")
    con = duckdb.connect()
    con.register("rows", TABLE.drop_columns([n for n in no if n in TABLE.column_names]))
    more = "*, uuid '00010203-0405-0607-0809-0a0b0c0d0e0f' AS u, 'red'::ENUM('red', 'green') AS colour, 5::HUGEINT AS huge, '{}'::JSON AS js, INTERVAL 3 DAY AS iv, [1, NULL, 3]::INT[3] AS arr"
    for codec in ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"):
        for version in ("V1", "V2"):
            write(f"duckdb {codec} {version}", lambda p: con.sql(f"COPY (SELECT {more} FROM rows) TO '{p}' (FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version})"))


def polars_files(write):
    rows = TABLE.drop_columns(["f16", "maps", "map", "list_null", "dec60", "dec32", "dict"])
    frame = pl.from_arrow(rows).with_columns(
        cat=pl.Series(["u", "v", None, "u", "v"] * (ROWS // 5), dtype=pl.Categorical), enum=pl.Series(["u", "v"] * (ROWS // 2), dtype=pl.Enum(["u", "v"]))
    )
    for codec in ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"):
        write(f"polars {codec}", lambda p: frame.write_parquet(p, compression=codec, row_group_size=30, statistics=True))


def fastparquet_files(write):
    names = ["bool", "i32", "i64", "u8", "u32", "f32", "f64", "text", "same", "bytes", "ts_ns"]
    frame = REQUIRED.select([n for n in names if n in REQUIRED.column_names]).to_pandas()
    frame["cat"] = pd.Categorical(["u", "v", None, "u", "v"] * (ROWS // 5))
    frame["some"] = pd.array([None if i % 7 == 3 else i for i in range(ROWS)], dtype="Int64")
    frame["maybe"] = pd.array([None if i % 5 == 3 else i % 2 == 0 for i in range(ROWS)], dtype="boolean")
    frame["texts"] = TABLE["text"].to_pandas().astype(object)
    frame["when"] = pd.date_range("2026-01-01", periods=ROWS, freq="h")
    frame = frame.drop(columns=["date", "dec38"], errors="ignore")
    for codec in ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4", "LZ4_RAW"):
        write(f"fastparquet {codec}", lambda p: fastparquet.write(p, frame, compression=codec, row_group_offsets=30, write_index=False))
    for way in ("int96",):
        write(f"fastparquet {way}", lambda p: fastparquet.write(p, frame[["text", "i32", "when"]], times=way, write_index=False))


def spark_files(write):
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        print("pyspark is not installed: no files by Spark")
        return
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    SPARK.append(spark)
    rows = TABLE.select(["bool", "i8", "i16", "i32", "i64", "f32", "f64", "text", "bytes", "dec5", "dec15", "dec38", "date", "ts_us", "list", "lists", "texts", "struct", "messages", "map"])
    base = os.path.join(WORK, "spark base.parquet")
    pq.write_table(rows, base, store_schema=False)
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "brotli"):
        for version in ("PARQUET_1_0", "PARQUET_2_0"):
            for legacy in ("false", "true"):
                if legacy == "true" and codec != "snappy":
                    continue

                def save(p):
                    folder = p + ".d"
                    (
                        spark.read.parquet(base).coalesce(1).write.mode("overwrite").option("compression", codec).option("parquet.writer.version", version)
                        .option("spark.sql.parquet.writeLegacyFormat", legacy).parquet(folder)
                    )
                    shutil.move(glob.glob(folder + "/part-*.parquet")[0], p)
                    shutil.rmtree(folder)

                spark.conf.set("spark.sql.parquet.writeLegacyFormat", legacy)
                spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96" if legacy == "true" else "TIMESTAMP_MICROS")
                write(f"spark {codec} {version}" + (" legacy" if legacy == "true" else ""), save)


def table_files(write):
    """Folders whose files differ in everything but what they mean."""
    frame = {"prompt": ["a", None, "c"], "n": [1, 2, 3], "x": [0.5, None, 2.5]}
    rows = pa.table(frame)
    parts = [
        rows,
        rows.select(["x", "prompt", "n"]).set_column(2, "n", pa.array([4, 5, None], pa.int32())),
        pa.table({"prompt": pa.nulls(2), "n": pa.array([7, 8], pa.uint16()), "more": pa.array([[{"a": 1}], None], pa.list_(pa.struct([("a", pa.int8())])))}),
        pa.table({"prompt": ["z"], "more": pa.array([[{"a": 300, "b": "x"}]], pa.list_(pa.struct([("a", pa.int16()), ("b", pa.string())])))}),
        rows.slice(0, 0),
        pa.table({"prompt": pa.array(["d", "d"]).dictionary_encode(), "n": pa.array([1, 2], pa.int8()), "x": pa.array([1, 2], pa.float32())}),
    ]

    def save(p):
        os.makedirs(p + "s")
        for i, part in enumerate(parts):
            pq.write_table(part, f"{p}s/{i}.parquet")
        duckdb.sql(f"COPY (SELECT 'q' AS prompt, 9::BIGINT AS n, NULL AS x) TO '{p}s/6.parquet' (FORMAT parquet)")
        pl.DataFrame({"prompt": ["r"], "n": [3]}).write_parquet(f"{p}s/7.parquet")
        fastparquet.write(f"{p}s/8.parquet", pd.DataFrame({"prompt": ["s"], "n": [3], "x": [1.0]}), write_index=False)

    write("folder of four writers", save)


# --- comparing


def plain(value):
    """A value that equals itself: NaN as text, maps as lists."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def read(path):
    return pq.ParquetFile(path, page_checksum_verification=True).read()


def raw(column):
    """Values as pyarrow has them, times as integers: Python has no nanoseconds."""
    column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type) or pa.types.is_duration(column.type):
        column = column.view(pa.int64())
    return plain(column.to_pylist())


def statistics(path, columns):
    meta = pq.ParquetFile(path).metadata
    by = {}
    for g in range(meta.num_row_groups):
        for c in range(meta.row_group(g).num_columns):
            k = meta.row_group(g).column(c)
            if k.path_in_schema.split(".")[0] not in columns:
                continue
            s = k.statistics
            by.setdefault(k.path_in_schema.replace(".list.item", ".list.element"), []).append(None if s is None else s)
    return by


def bounds(table):
    """The statistics that a table's leaves should have: least, greatest, nulls."""
    table = table.select([f.name for f in table.schema if not pa.types.is_null(f.type)])
    path = os.path.join(WORK, "bounds.parquet")
    pq.write_table(table, path, row_group_size=50_000, use_dictionary=False)
    return statistics(path, table.column_names)


def compare(source, out, table):
    before = duckdb_union(source) if table else read(source)
    after = read(out)
    if [n for n in after.column_names if n not in ADDED] != list(before.column_names):
        return f"columns {after.column_names}, want {before.column_names}"
    for name in before.column_names:
        a, b = before[name], after[name]
        if a.type != b.type and not table:
            return f"{name} is {b.type}, want {a.type}"
        if a.type == b.type and a.equals(b):
            continue  # Python has no dates beyond the year 9999
        if raw(a) != raw(b):
            for i, (x, y) in enumerate(zip(raw(a), raw(b))):
                if x != y:
                    return f"{name}, row {i}: {str(y)[:60]}, want {str(x)[:60]}"
            return f"{name}: {len(raw(b))} values, want {len(raw(a))}"
    if table:
        return ""
    return compare_statistics(before, out)


def compare_statistics(before, out):
    want, got = bounds(before), statistics(out, before.column_names)
    for path, chunks in want.items():
        have = got.get(path)
        if have is None or len(have) != len(chunks):
            continue
        for w, g in zip(chunks, have):
            if w is None or g is None:
                continue
            if g.null_count != w.null_count and path.count(".") == 0:
                return f"statistics of {path}: {g.null_count} nulls, want {w.null_count}"
            if g.has_min_max and w.has_min_max:
                try:
                    pair = (g.min, g.max), (w.min, w.max)
                except (NotImplementedError, pa.ArrowException, OverflowError, ValueError):
                    pair = (g.min_raw, g.max_raw), (w.min_raw, w.max_raw)
                if pair[0] != pair[1]:
                    return f"statistics of {path}: {pair[0]}, want {pair[1]}"
    return ""


def compare_filters(source, out):
    """The rows that pass a filter on every column are those with the value, for readers that trust statistics. (Some
    files' own statistics are wrong, and lose rows.)"""
    before = read(source)
    for name in before.column_names:
        column = before[name]
        if not column.type.equals(column.type) or pa.types.is_nested(column.type) or pa.types.is_null(column.type):
            continue
        try:
            values = list(column.drop_null().unique())[:4]
        except (pa.ArrowException, NotImplementedError):
            continue
        for value in values:
            try:
                a = pc.sum(pc.equal(column, value)).as_py() or 0
            except (pa.ArrowException, NotImplementedError):
                continue
            b = ds.dataset(out).to_table(columns=[name], filter=ds.field(name) == value).num_rows
            if a != b:
                return f"filter {name} == {value}: {b} rows, want {a}"
    return ""


def duckdb_union(folder):
    return duckdb.sql(f"SELECT * FROM read_parquet('{folder}/*.parquet', union_by_name = true)").to_arrow_table()


SPARK = []
# What the pass adds, and what a job adds.
ADDED = ["truncated_tokens", "response", "reasoning", "finish_reason", "stop_reason", "prompt_tokens", "completion_tokens", "error_code", "error", "row_index", "sample_index", "seed", "run_id"]
JUDGES = {
    "pyarrow": read,
    "duckdb": lambda p: duckdb.sql(f"FROM '{p}'").fetchall(),
    "polars": pl.read_parquet,
}
READERS = {
    "duckdb": lambda p: duckdb_rows(duckdb.sql(f"FROM '{p}'")),
    "polars": lambda p: str(pl.read_parquet(p).drop(ADDED, strict=False).to_dicts()),
    "pandas": lambda p: str(pd.read_parquet(p).drop(columns=ADDED, errors="ignore").to_dict("records")),
    "fastparquet": lambda p: nulls(fastparquet.ParquetFile(p).to_pandas().drop(columns=ADDED, errors="ignore")),
    "spark": lambda p: str(SPARK[0].read.parquet(p).drop(*ADDED).collect()),
}
opened = collections.Counter()


def nulls(frame):
    """Rows, with None for nulls: fastparquet has NaN or None, as pages are encoded."""
    frame = frame.astype(object)
    return str(frame.where(frame.notna(), None).to_dict("records"))


def duckdb_rows(rows):
    return str(rows.project(", ".join(f'"{c}"' for c in rows.columns if c not in ADDED)).fetchall())



def others(source, out):
    """Every other library that opens the input opens the output, with the same values."""
    for name, read_rows in READERS.items():
        if name == "spark" and not SPARK:
            continue
        if name == "fastparquet" and not os.path.basename(source).startswith(name):
            continue  # some pages of other writers end its process, in their own files too
        try:
            before = read_rows(source)
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            opened[name, "do not open the input"] += 1
            continue
        if read_rows(out) != before:
            return f"{name} reads other values"
        opened[name, "equal"] += 1
    return ""


def job(path):
    """Runs a file's rows as prompts and returns what it wrote."""
    out = os.path.join(WORK, "job")
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([PROGRAM, "run", path, "--out", out, "--prompt-column", "text", "--tp", "1", "--max-tokens", "1", "--timeline", "off", "--ignore-row-params", "--max-errors", "99", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"exit code {done.returncode}: {done.stderr.strip()}")
    return os.path.join(out, "outputs", "part-00000.parquet")


def through_job(path):
    """What a job makes of a file is what the file has, to every library and every filter."""
    out = job(path)
    return compare(path, out, False) or compare_filters(path, out) or others(path, out)


def quiet(f, *args):
    try:
        return f(*args)
    except BaseException as e:  # polars raises panics so
        if isinstance(e, KeyboardInterrupt):
            raise
        return f"{type(e).__name__}: {str(e)[:200]}"


def main():
    shutil.rmtree(IN, ignore_errors=True)
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(IN)
    os.makedirs(OUT)
    unwritten = []

    def write(name, save):
        path = os.path.join(IN, name + ".parquet")
        try:
            save(path)
        except Exception as e:
            unwritten.append((name, str(e)[:120]))
            for left in glob.glob(path + "*"):
                shutil.rmtree(left) if os.path.isdir(left) else os.remove(left)

    for files in (pyarrow_files, duckdb_files, polars_files, fastparquet_files, spark_files, table_files):
        files(write)
    given = os.environ.get("GLMBATCH_PARQUET_FILES")
    if given:
        for path in glob.glob(given + "/**/*.parq*", recursive=True):
            if os.path.isfile(path):
                name = os.path.relpath(path, given).replace("/", "__")
                shutil.copyfile(path, os.path.join(IN, "given " + name.removesuffix(".parquet").removesuffix(".parq") + ".parquet"))
    subprocess.run([PASS, "-test.run", "TestConformanceFolder"], env={**os.environ, "GLMBATCH_CONFORMANCE": WORK}, check=True, stdout=subprocess.DEVNULL)
    refused = dict((line.split("\t")[0], line.rstrip("\n").split("\t")[1:]) for line in open(os.path.join(WORK, "refused.txt")))

    count = collections.Counter()
    problems = []
    for path in sorted(glob.glob(IN + "/*")):
        name = os.path.basename(path)
        writer = name.split(" ")[0]
        table = path.endswith(".parquets")
        count[writer, "tried"] += 1
        if name in refused:
            kind, why = refused[name]
            by = [n for n, f in JUDGES.items() if writer == "given" and quiet(lambda: f(path) and "")]
            if by:
                count[writer, "refused"] += 1
                print(f"refused here and by {', '.join(by)}: {name}: {kind}: {why.split(': ', 1)[-1][:150]}")
            else:
                count[writer, "refused"] += 1
                problems.append(f"REFUSED {name}: {kind}: {why}")
            continue
        out = os.path.join(OUT, name.removesuffix("s") if table else name)
        problem = quiet(compare, path, out, table)
        if not problem and not table:
            problem = quiet(compare_filters, path, out) or quiet(others, path, out)
        if problem and writer == "given" and quiet(lambda: read(path) and ""):
            problem = quiet(others, path, out)
            count[writer, "not read by pyarrow, " + ("OTHER" if problem else "equal in the rest")] += 1
            if problem:
                problems.append(f"OTHER {name}: {problem}")
        elif problem:
            count[writer, "other"] += 1
            problems.append(f"OTHER {name}: {problem}")
        else:
            count[writer, "equal"] += 1
    seen = set()
    for path in sorted(glob.glob(IN + "/*.parquet")):
        name = os.path.basename(path)
        writer = name.split(" ")[0]
        if name in refused or writer == "given" or (os.environ.get("JOBS") != "all" and (writer in seen or "text" not in pq.read_schema(path).names)):
            continue
        seen.add(writer)
        problem = quiet(through_job, path)
        count[writer, "jobs that are not" if problem else "jobs equal"] += 1
        if problem:
            problems.append(f"JOB {name}: {problem}")
    for writer in sorted({w for w, _ in count}):
        print(f"{writer:12}" + ", ".join(f"{n} {what}" for (w, what), n in count.items() if w == writer))
    for name in READERS:
        print(f"read by {name}: " + ", ".join(f"{n} {what}" for (r, what), n in sorted(opened.items()) if r == name))
    for name, why in unwritten:
        print(f"not written: {name}: {why}")
    for p in problems:
        print(p)
    failed = len(problems)
    print(f"{sum(n for (w, k), n in count.items() if k == 'equal' and w != 'given')} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
