"""Damages Parquet files and Arrow streams in many ways, passes them through glmbatch's reader and writer, and compares
with pyarrow, which verifies checksums and validates arrays. Run: interop/mutants.py FOLDER PASS [COUNT [SEED [KINDS]]],
where PASS is the datasets package's test program and KINDS a regular expression (parquet|arrow). A value that differs
from pyarrow's fails, and so does a file that pyarrow refuses; so does what ends the process, which has 1 GiB and 20 s
for each file."""

import collections
import datetime
import decimal
import math
import multiprocessing
import os
import random
import re
import resource
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

WORK, PASS = sys.argv[1], sys.argv[2]
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
KINDS = sys.argv[5] if len(sys.argv) > 5 else ""
IN, OUT = os.path.join(WORK, "in"), os.path.join(WORK, "out")
GIB = 1 << 30


def table():
    n = 120
    some = lambda f, t: pa.array([None if i % 9 == 4 else f(i) for i in range(n)], t)
    return pa.table(
        {
            "prompt": some(lambda i: "prompt %d of some length" % i, pa.string()),
            "same": some(lambda i: "ab"[i % 2], pa.string()),
            "id": pa.array(range(n), pa.int64()),
            "flag": some(lambda i: i % 3 == 0, pa.bool_()),
            "x": some(lambda i: i / 7, pa.float64()),
            "list": some(lambda i: [i, None, i * 2][: i % 4], pa.list_(pa.int32())),
            "messages": some(lambda i: [{"role": "user", "content": "c%d" % i}], pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        }
    )


def typed():
    """A few rows of the types that Arrow streams have."""
    n = 10
    some = lambda f, t: pa.array([None if i % 4 == 2 else f(i) for i in range(n)], t)
    day = datetime.date(2024, 1, 31)
    columns = {
        "prompt": some(lambda i: "prompt %d" % i, pa.string()),
        "large": some(lambda i: "l%d" % i, pa.large_string()),
        "bytes": some(lambda i: b"\x00%d" % i, pa.binary()),
        "fixed": some(lambda i: b"%03d" % i, pa.binary(3)),
        "view": some(lambda i: "v" * (3 * i), pa.string_view()),
        "bool": some(lambda i: i % 3 == 0, pa.bool_()),
        "i8": some(lambda i: i, pa.int8()),
        "u64": pa.array(range(n), pa.uint64()),
        "half": some(lambda i: i / 2, pa.float16()),
        "x": some(lambda i: i / 7, pa.float64()),
        "date": some(lambda i: day, pa.date32()),
        "date64": some(lambda i: day, pa.date64()),
        "time": some(lambda i: datetime.time(1, 2, i), pa.time32("s")),
        "time64": some(lambda i: datetime.time(1, 2, i), pa.time64("us")),
        "at": some(lambda i: datetime.datetime(2024, 1, 1, i), pa.timestamp("us", "UTC")),
        "span": some(lambda i: datetime.timedelta(seconds=i), pa.duration("ms")),
        "money": some(lambda i: decimal.Decimal(i) / 100, pa.decimal128(7, 2)),
        "more": some(lambda i: decimal.Decimal(i) / 100, pa.decimal256(50, 2)),
        "null": pa.nulls(n),
        "list": some(lambda i: [i, None, i * 2][: i % 4], pa.list_(pa.int32())),
        "large_list": some(lambda i: ["a", None][: i % 3], pa.large_list(pa.string())),
        "three": some(lambda i: [i, 1, 2], pa.list_(pa.int16(), 3)),
        "map": some(lambda i: [("k%d" % i, i)], pa.map_(pa.string(), pa.int32())),
        "struct": some(lambda i: {"a": i, "b": ["x%d" % i]}, pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
        "kind": some(lambda i: "ab"[i % 2], pa.string()).dictionary_encode(),
        "list_view": pa.ListViewArray.from_arrays([0, 2, 1, 0, 0, 0, 3, 3, 3, 4], [1, 2, 0, 1, 1, 1, 1, 1, 1, 0], pa.array([1, 2, 3, 4])),
    }
    t = pa.table(columns)
    fields = [f.with_metadata({"unit": "ms"}) if f.name == "x" else f for f in t.schema]
    return t.cast(pa.schema(fields, {"who": "x"}))


def bases():
    if re.search(KINDS, "parquet"):
        yield from parquet_bases()
    if re.search(KINDS, "arrow"):
        yield from arrow_bases()


def arrow_bases():
    t, path = typed(), os.path.join(WORK, "base.arrow")
    simple = [n for n in t.column_names if n in ("prompt", "kind", "struct", "list", "x", "bool")]
    for table in (t, t.select(simple), t.select(["prompt", "three", "map"]), t.select(["view", "list_view", "null"]), t.select(["fixed", "date64", "time", "money"])):
        for codec in (None, "lz4", "zstd"):
            for write in (pa.ipc.new_stream, pa.ipc.new_file):
                with write(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as w:
                    w.write_table(table, max_chunksize=6)
                yield ".arrow", open(path, "rb").read()


def parquet_bases():
    t, few = table(), typed().drop_columns(["view", "list_view"])
    path = os.path.join(WORK, "base.parquet")
    for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        for version in ("1.0", "2.0"):
            for encoding in (None, "plain", "delta"):
                options = dict(compression=codec, data_page_version=version, write_page_checksum=True, data_page_size=400)
                if encoding:
                    options["use_dictionary"] = False
                if encoding == "delta":
                    options["column_encoding"] = {"prompt": "DELTA_BYTE_ARRAY", "same": "DELTA_LENGTH_BYTE_ARRAY", "id": "DELTA_BINARY_PACKED", "flag": "RLE", "x": "BYTE_STREAM_SPLIT"}
                pq.write_table(t, path, **options)
                yield ".parquet", open(path, "rb").read()
        for options in (dict(write_page_index=True, store_schema=False), dict(write_statistics=False), dict(data_page_version="2.0", sorting_columns=[pq.SortingColumn(0)])):
            pq.write_table(few, path, compression=codec, **options)
            yield ".parquet", open(path, "rb").read()


def mutate(r, suffix, data):
    d = bytearray(data)
    at = (4 if suffix == ".parquet" else 0) + r.randrange(len(d) - 80)
    if suffix == ".parquet" and r.random() < 0.4:  # the footer
        footer = len(d) - 8 - int.from_bytes(d[-8:-4], "little")
        at = footer + r.randrange(len(d) - footer)
    kind = r.randrange(12)
    if kind < 4:
        d[at] ^= 1 << r.randrange(8)
    elif kind == 4:
        d[at : at + 16] = r.randbytes(16)
    elif kind == 5:
        d[at : at + 4] = r.randbytes(4)
    elif kind == 6:
        del d[at:]
    elif kind == 7:
        del d[at : at + r.choice((1, 1, 2, 4, 8, r.randrange(1, 64)))]
    elif kind == 8:
        d[at] = r.choice((0, 0x7F, 0x80, 0xFF))
    elif kind == 9:  # numbers that are nearly right
        d[at] = (d[at] + r.choice((-2, -1, 1, 2))) & 255
    elif kind == 10:
        d[at:at] = d[at : at + r.choice((1, 4, 8))]
    else:
        other = r.randrange(len(d) - 16)
        n = r.choice((1, 2, 4, 8))
        d[at : at + n] = d[other : other + n]
    return bytes(d)


def plain(v):
    if isinstance(v, float) and math.isnan(v):
        return "NaN"
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return [plain(x) for x in v] if isinstance(v, (list, tuple)) else v


def values(column):
    try:
        return plain(column.to_pylist())
    except Exception:  # times that Python has not
        return str(column.combine_chunks().to_string(window=1000))


def read(path):
    if path.endswith(".arrow"):
        with open(path, "rb") as f:
            magic = f.read(6)
        with pa.memory_map(path) as f:
            t = (pa.ipc.open_file(f) if magic == b"ARROW1" else pa.ipc.open_stream(f)).read_all()
            t.validate(full=True)
            return t
    return pq.ParquetFile(path, page_checksum_verification=True).read()


def without_copy(path):
    """A Parquet file whose Arrow schema goes by another name: the copy may be what is damaged."""
    with open(path, "rb") as f:
        data = f.read().replace(b"ARROW:schema", b"OTHER:schema")
    return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read()


def verdict(name):
    """What came of a file, beside pyarrow."""
    want, why, path = None, "", os.path.join(IN, name)
    try:
        want = read(path)
    except Exception as e:
        why = str(e).replace("\n", " ")
        try:
            if not name.endswith(".arrow"):
                want = without_copy(path)
        except Exception:
            pass
    out = os.path.join(OUT, name)
    if not os.path.exists(out):
        return "refused by both" if want is None else "refused here alone"
    if "UTF8" in why or "UTF-8" in why:
        return "not UTF-8: an error of rows"
    if want is None:
        return "READ HERE ALONE: " + re.sub("[0-9]+", "N", why)[:90]
    try:
        have = pq.ParquetFile(out).read()
    except Exception as e:
        return "OUTPUT REFUSED: " + str(e)[:90]
    bad = others(want, have)
    if bad and not name.endswith(".arrow") and not others(without_copy(path), have):
        return "equal without Arrow's copy of the schema, which has other names"
    return "OTHER VALUES of " + " ".join(bad) if bad else "equal"


def others(want, have):
    return [n for n in want.column_names if n not in have.column_names or values(have[n]) != values(want[n])]


def limited():
    resource.setrlimit(resource.RLIMIT_DATA, (GIB + GIB // 2, GIB + GIB // 2))


def main():
    for folder in (IN, OUT):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    r = random.Random(SEED)
    files = list(bases())
    for i in range(COUNT):
        suffix, data = files[i % len(files)]
        with open(os.path.join(IN, "%05d%s" % (i, suffix)), "wb") as f:
            f.write(mutate(r, suffix, data) if i >= len(files) else data)
    env = {**os.environ, "GLMBATCH_CONFORMANCE": WORK, "GOMEMLIMIT": "1GiB"}
    done = subprocess.run([PASS, "-test.run", "TestConformanceFolder", "-test.timeout", f"{20 * COUNT}s"], env=env, preexec_fn=limited, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-3000:] + done.stderr[-3000:])
        sys.exit("it ended in a panic, a hang or beyond its memory")
    refused = {line.split("\t")[0]: line for line in open(os.path.join(WORK, "refused.txt"))}
    panics = [line for line in refused.values() if "runtime error" in line or "panic" in line]
    count, shown = collections.Counter(), collections.Counter()
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=500) as pool:
        names = sorted(os.listdir(IN))
        for name, what in zip(names, pool.imap(verdict, names)):
            count[what] += 1
            if what.startswith(("OTHER", "READ", "OUTPUT", "refused here alone")) and shown[what] < 12:
                shown[what] += 1
                print(what, name, refused.get(name, "").strip()[:200])
    print(f"{COUNT} files: " + ", ".join(f"{n} {what}" for what, n in sorted(count.items())) + f"; {len(panics)} panics recovered")
    for line in panics[:10]:
        print(line.strip()[:300])
    sys.exit(1 if any(what.isupper() or what.split(":")[0].split(" of ")[0].isupper() for what in count) else 0)


if __name__ == "__main__":
    main()
