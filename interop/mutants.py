"""Damages Parquet files in many ways, passes them through glmbatch's reader and writer, and compares with pyarrow, which
verifies checksums. Run: interop/mutants.py FOLDER PASS [COUNT], where PASS is the datasets package's test program.
A value that differs from pyarrow's fails; so does what ends the process, which has 1 GiB and 20 s for each file."""

import collections
import glob
import math
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

WORK, PASS = sys.argv[1], sys.argv[2]
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
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


def bases():
    t = table()
    for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        for version in ("1.0", "2.0"):
            for encoding in (None, "plain", "delta"):
                options = dict(compression=codec, data_page_version=version, write_page_checksum=True, data_page_size=400)
                if encoding:
                    options["use_dictionary"] = False
                if encoding == "delta":
                    options["column_encoding"] = {"prompt": "DELTA_BYTE_ARRAY", "same": "DELTA_LENGTH_BYTE_ARRAY", "id": "DELTA_BINARY_PACKED", "flag": "RLE", "x": "BYTE_STREAM_SPLIT"}
                path = os.path.join(WORK, "base.parquet")
                pq.write_table(t, path, **options)
                yield open(path, "rb").read()


def mutate(r, data):
    d = bytearray(data)
    footer = len(d) - 8 - int.from_bytes(d[-8:-4], "little")
    kind = r.randrange(7)
    if kind == 0:
        d[4 + r.randrange(footer - 4)] ^= 1 << r.randrange(8)
    elif kind == 1:
        d[footer + r.randrange(len(d) - footer)] ^= 1 << r.randrange(8)
    elif kind == 2:
        at = 4 + r.randrange(len(d) - 76)
        d[at : at + 16] = r.randbytes(16)
    elif kind == 3:
        at = footer + r.randrange(max(1, len(d) - footer - 12))
        d[at : at + 4] = r.randbytes(4)
    elif kind == 4:
        del d[r.randrange(len(d)) :]
    elif kind == 5:
        at, n = 4 + r.randrange(footer - 8), r.randrange(1, 64)
        del d[at : at + n]
    else:
        at = 4 + r.randrange(footer - 4)
        d[at] = r.choice((0, 0x7F, 0x80, 0xFF))
    return bytes(d)


def plain(v):
    if isinstance(v, float) and math.isnan(v):
        return "NaN"
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return [plain(x) for x in v] if isinstance(v, (list, tuple)) else v


def verdict(name):
    """What came of a file, beside pyarrow."""
    try:
        before = pq.ParquetFile(os.path.join(IN, name), page_checksum_verification=True).read()
        want = {n: plain(before[n].to_pylist()) for n in before.column_names}
    except Exception as e:
        want, why = None, str(e)
    out = os.path.join(OUT, name)
    if not os.path.exists(out):
        return "refused by both" if want is None else "refused here alone"
    if want is None and any(w in why for w in ("base64", "flatbuffer", "Field.type", "IPC message")):
        return "read here without Arrow's damaged schema"
    if want is None:
        return "read here alone: " + why[:60]
    after = pq.ParquetFile(out).read()
    return "equal" if all(plain(after[n].to_pylist()) == v for n, v in want.items()) else "OTHER VALUES"


def limited():
    resource.setrlimit(resource.RLIMIT_DATA, (GIB + GIB // 2, GIB + GIB // 2))


def main():
    for folder in (IN, OUT):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    r = random.Random(1)
    files = list(bases())
    for i in range(COUNT):
        with open(os.path.join(IN, "%05d.parquet" % i), "wb") as f:
            f.write(mutate(r, files[i % len(files)]))
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
            if what.startswith(("OTHER", "read here alone", "refused here alone")) and shown[what] < 12:
                shown[what] += 1
                print(what, name, refused.get(name, "").strip()[:200])
    print(f"{COUNT} files: " + ", ".join(f"{n} {what}" for what, n in sorted(count.items())) + f"; {len(panics)} panics recovered")
    for line in panics[:10]:
        print(line.strip()[:300])
    sys.exit(1 if count["OTHER VALUES"] else 0)


if __name__ == "__main__":
    main()
