"""Writes prompts with each library, runs glmbatch on them, and opens its files with each library.
Run: interop/check.py FOLDER FIXTURES, where FOLDER has the glmbatch program. Prints a table; exits 1 if a check failed."""

import datetime
import decimal
import glob
import json
import math
import os
import subprocess
import sys
import time

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

WORK, FIXTURES = sys.argv[1], sys.argv[2]
checks = []  # (what, library, problem or "")

OURS = {
    "response": "string",
    "reasoning": "string",
    "finish_reason": "string",
    "stop_reason": "string",
    "prompt_tokens": "int32",
    "completion_tokens": "int32",
    "error_code": "string",
    "error": "string",
    "row_index": "int64",
    "sample_index": "int32",
    "seed": "int64",
    "run_id": "string",
}
PROMPTS = [
    "What is the capital of France?",
    "Capital of Japan?",
    None,
    "Write in upper case: river stone",
    "How many words are in: apple river",
]
MESSAGES = [
    [{"role": "user", "content": "Capital of Kenya?"}],
    [
        {"role": "system", "content": "You route support tickets. Answer with one word."},
        {"role": "user", "content": "Route this ticket: I cannot sign in to my account."},
    ],
    None,
    [{"role": "user", "content": "Sort alphabetically: table, cloud"}],
]
PARAMS = [
    {"temperature": 0.7, "seed": 7, "max_tokens": 4},
    {"temperature": 0.0, "seed": None, "max_tokens": 2},
    None,
    {"temperature": None, "seed": 3, "max_tokens": 3},
]


def check(what, library, call):
    started = time.time()
    try:
        problem = call() or ""
    except BaseException as e:  # polars raises panics as BaseException
        if isinstance(e, KeyboardInterrupt):
            raise
        problem = f"{type(e).__name__}: {e}"
    checks.append((what, library, str(problem).strip().split("\n")[0][:200], time.time() - started))


# --- prompts as each library writes them


def write_inputs(folder):
    """Returns {name: (path, column of prompts)}."""
    os.makedirs(folder, exist_ok=True)
    path = lambda name: os.path.join(folder, name + ".parquet")
    text = {"prompt": PROMPTS, "id": list(range(len(PROMPTS))), "tag": ["a", None, "b", "a", "c"]}
    struct = pa.struct([("temperature", pa.float64()), ("seed", pa.int64()), ("max_tokens", pa.int32())])
    message = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    nested = pa.table(
        {"messages": pa.array(MESSAGES, message), "sampling_params": pa.array(PARAMS, struct), "weight": [1.5, None, 2.5, math.inf]}
    )

    pq.write_table(pa.table(text), path("pyarrow string"))
    pq.write_table(
        pa.table({"prompt": pa.array(PROMPTS, pa.large_string()), "tag": pa.array(text["tag"]).dictionary_encode()}),
        path("pyarrow large, dictionary"),
    )
    pq.write_table(
        pa.table({"prompt": pa.array(PROMPTS).dictionary_encode()}), path("pyarrow dictionary"), row_group_size=2, compression="gzip"
    )
    pq.write_table(nested, path("pyarrow messages"), data_page_version="2.0")
    pd.DataFrame(text).astype({"tag": "category"}).to_parquet(path("pandas string"))
    pd.DataFrame(
        {"messages": MESSAGES, "sampling_params": [json.dumps(p) if p else None for p in PARAMS], "system": [None] * 4}
    ).to_parquet(path("pandas messages"))
    pl.DataFrame(text).write_parquet(path("polars string"))
    pl.from_arrow(nested).write_parquet(path("polars messages"))
    pl.DataFrame({"messages": [json.dumps(m) if m else None for m in MESSAGES], "max_tokens": [3, None, 2, 1]}).write_parquet(
        path("polars JSON text")
    )
    for name, rows in (("string", pa.table(text)), ("messages", nested)):
        duckdb.sql(f"COPY (FROM rows) TO '{path('duckdb ' + name)}' (FORMAT parquet)")
    return sorted(glob.glob(os.path.join(folder, "*.parquet")))


def run(path, out, *flags):
    done = subprocess.run(
        [os.path.join(WORK, "glmbatch"), "run", path, "--out", out, "--quiet", "--max-errors", "100", *flags],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr}"
    return ""


# --- what glmbatch wrote, opened by each library


def part(out, folder, ext="parquet"):
    return os.path.join(out, folder, "part-00000." + ext)


def same(a, b):
    """Equal chunked arrays; NaN equals NaN."""
    if a.type != b.type:
        return False
    return a.equals(b) or a.cast(pa.string()).equals(b.cast(pa.string()))


def by_pyarrow(source, out, rows):
    before, after = pq.read_table(source), pq.read_table(part(out, "outputs"))
    for name in before.column_names:
        if before.schema.field(name).type != after.schema.field(name).type:
            return f"column {name} was {before.schema.field(name).type} and is {after.schema.field(name).type}"
        if not same(before[name], after[name]):
            return f"column {name} has other values"
        if before.schema.field(name).nullable != after.schema.field(name).nullable:
            return f"column {name} has another nullability"
    for name, kind in OURS.items():
        if str(after.schema.field(name).type) != kind:
            return f"column {name} is {after.schema.field(name).type}, want {kind}"
    if after["row_index"].to_pylist() != list(range(rows)):
        return f"row_index is {after['row_index'].to_pylist()}"
    prompt = "messages" if "messages" in before.column_names else "prompt"
    for given, code, response in zip(before[prompt].to_pylist(), after["error_code"].to_pylist(), after["response"].to_pylist()):
        if (given is None) != (code == "null_prompt") or (given is None) != (response is None):
            return f"prompt {given!r} has error_code {code!r} and response {response!r}"


def by_duckdb(source, out, rows):
    before, after = duckdb.sql(f"FROM '{source}'"), duckdb.sql(f"FROM '{part(out, 'outputs')}'")
    types = dict(zip(after.columns, map(str, after.types)))
    for name, kind in zip(before.columns, map(str, before.types)):
        if types[name] != kind:
            return f"column {name} was {kind} and is {types[name]}"
    names = ", ".join(f'"{n}"' for n in before.columns)
    # As text, where NaN equals NaN.
    if str(duckdb.sql(f"SELECT {names} FROM '{part(out, 'outputs')}'").fetchall()) != str(before.fetchall()):
        return "the input's columns have other values"
    want = {"response": "VARCHAR", "prompt_tokens": "INTEGER", "row_index": "BIGINT", "seed": "BIGINT", "error_code": "VARCHAR"}
    return "; ".join(f"column {n} is {types[n]}" for n, t in want.items() if types[n] != t)


def by_polars(source, out, rows):
    before, after = pl.read_parquet(source), pl.read_parquet(part(out, "outputs"))
    for name, kind in before.schema.items():
        if after.schema[name] != kind:
            return f"column {name} was {kind} and is {after.schema[name]}"
    if not before.equals(after.select(before.columns)):
        return "the input's columns have other values"
    want = {"response": pl.String, "prompt_tokens": pl.Int32, "row_index": pl.Int64, "seed": pl.Int64, "error_code": pl.String}
    return "; ".join(f"column {n} is {after.schema[n]}" for n, t in want.items() if after.schema[n] != t)


def by_pandas(source, out, rows):
    before, after = pd.read_parquet(source), pd.read_parquet(part(out, "outputs"))
    if list(before.dtypes) != list(after[before.columns].dtypes):
        return f"types were {list(before.dtypes)} and are {list(after[before.columns].dtypes)}"
    pd.testing.assert_frame_equal(before, after[before.columns])
    if str(after["prompt_tokens"].dtype) != "int32" or str(after["row_index"].dtype) != "int64":
        return "our columns have other types"


LIBRARIES = {"pyarrow": by_pyarrow, "duckdb": by_duckdb, "polars": by_polars, "pandas": by_pandas}


# --- steps and timelines: the same rows in Parquet and Arrow IPC, by each library


def table(library, path):
    """The rows as a pyarrow table, read by the library."""
    arrow = path.endswith(".arrow")
    match library:
        case "pyarrow":
            return pa.ipc.open_file(path).read_all() if arrow else pq.read_table(path)
        case "duckdb":
            if arrow:
                rows = pa.ipc.open_file(path).read_all()
                return duckdb.sql("FROM rows").arrow().read_all()
            return duckdb.sql(f"FROM '{path}'").arrow().read_all()
        case "polars":
            return (pl.read_ipc(path) if arrow else pl.read_parquet(path)).to_arrow()
        case "pandas":
            return pa.Table.from_pandas(pd.read_feather(path) if arrow else pd.read_parquet(path), preserve_index=False)


TEXT = {"lane", "kernel", "class", "evidence", "kind", "operator", "module", "frame", "gpu_throttle"}
REAL = {"gpu_watts", "gpu_joules"}
WIDE = {
    "step",
    "start_ns",
    "end_ns",
    "wall_ns",
    "schedule_ns",
    "upload_ns",
    "launch_ns",
    "device_ns",
    "sample_ns",
    "slots",
    "ctx",
    "bytes",
    "wire_bytes",
    "flops",
    "correlation",
    "graph",
    "gpu_memory_bytes",
}


def kind(name):
    for names, kind in ((TEXT, "string"), (REAL, "double"), (WIDE, "int64"), ({"recorded"}, "bool")):
        if name in names:
            return kind
    return "int32"



def recorded(library, path, want):
    rows = table(library, path)
    if rows.num_rows == 0:
        return "no rows"
    plain = {}
    for name in rows.column_names:
        column = rows[name].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        want_type = kind(name)
        if library == "pandas" and name.startswith("gpu_") and column.null_count == len(column):
            column = pa.nulls(len(column), column.type).cast(want_type)  # pandas has no integers that may be null
        if str(column.type).replace("large_", "").replace("_view", "") != want_type:
            return f"column {name} is {column.type}, want {want_type}"
        plain[name] = column.cast(pa.string() if want_type == "string" else column.type)
    rows = pa.table(plain)
    if "start_ns" in plain and "end_ns" in plain and pc.any(pc.less(rows["end_ns"], rows["start_ns"])).as_py():
        return "a span ends before it starts"
    key = path.split("/")[-2]
    if key in want and not (rows.column_names == want[key].column_names and rows.equals(want[key])):
        return "other rows than pyarrow read"
    want.setdefault(key, rows)


# --- rows from Python to glmbatch and back, without files


def recipes():
    """The code of docs/python.md, run with this program."""
    os.environ["PATH"] = WORK + os.pathsep + os.environ["PATH"]
    with open(os.path.join(os.path.dirname(__file__), "..", "docs", "python.md")) as page:
        blocks = page.read().split("```python\n")[1:]
    names = {"print": lambda *values: None}
    for block in blocks:
        exec(block.split("```")[0], names)
    if names["answers"]["response"].to_pylist() != ["Tokyo", "Nairobi"]:
        return f"the responses are {names['answers']['response'].to_pylist()}"
    if names["responses"] != ["Tokyo", "Nairobi"]:
        return f"the responses of JSON lines are {names['responses']}"
    recipes.glmbatch = names["glmbatch"]


def all_types():
    return pa.table(
        {
            "prompt": ["Capital of Japan?", None, "Add 1 and 2."],
            "int16": pa.array([1, None, -3], pa.int16()),
            "uint64": pa.array([2**64 - 1, None, 0], pa.uint64()),
            "half": pa.array([0.5, 1, None], pa.float16()),
            "decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pa.decimal128(10, 2)),
            "wide": pa.array([decimal.Decimal(10**50), None, decimal.Decimal(-1)], pa.decimal256(60, 0)),
            "time": pa.array([datetime.datetime(2024, 1, 1), None, datetime.datetime(1960, 5, 5)], pa.timestamp("us", tz="UTC")),
            "seconds": pa.array([datetime.datetime(2024, 1, 1), None, datetime.datetime(1960, 5, 5)], pa.timestamp("s")),
            "day": pa.array([datetime.date(2024, 1, 1), None, datetime.date(1960, 5, 5)]),
            "clock": pa.array([datetime.time(1, 2, 3), None, datetime.time(0)], pa.time64("ns")),
            "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
            "pair": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)),
            "struct": pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}], pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))])),
            "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
            "null": pa.nulls(3),
            "bytes": pa.array([b"\x00\xff", None, b""], pa.large_binary()),
            "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
            "view": pa.array(["x", "a text that is longer than a view", None], pa.string_view()),
        }
    )


def streamed(table):
    """Every value comes back from a job as it was."""
    back = recipes.glmbatch(table, "--timeline", "off", "--max-tokens", "4")
    if back["error_code"].to_pylist() != [None, "null_prompt", None]:
        return f"error codes are {back['error_code'].to_pylist()}"
    for name in table.column_names:
        if back[name].to_pylist() != table[name].to_pylist():
            return f"column {name} was {table[name].to_pylist()} and is {back[name].to_pylist()}"


def main():
    inputs = write_inputs(os.path.join(WORK, "prompts"))
    inputs += [os.path.join(FIXTURES, name + ".parquet") for name in ("pyarrow", "pandas", "polars", "duckdb", "spark")]
    for source in inputs:
        what = os.path.basename(source).removesuffix(".parquet") + (" (all types)" if FIXTURES in source else "")
        out = os.path.join(WORK, "out", what)
        flags = ["--max-tokens", "8", "--timeline", "off"]
        if "max_tokens" in pq.read_schema(source).names:
            flags += ["--param-columns", "max_tokens"]  # both the flag and the column say it
        check("run: " + what, "glmbatch", lambda: run(source, out, *flags))
        rows = pq.read_metadata(source).num_rows
        for library, by in LIBRARIES.items():
            check("output: " + what, library, lambda: by(source, out, rows))
    check("docs/python.md", "pyarrow", recipes)
    check("stream of all types", "pyarrow", lambda: streamed(all_types()))
    check("stream of all types", "polars", lambda: streamed(pl.from_arrow(all_types().drop_columns(["map", "pair", "wide"])).to_arrow()))
    for ext in ("parquet", "arrow"):
        out = os.path.join(WORK, "recorded-" + ext)
        check(
            "run: timeline in " + ext,
            "glmbatch",
            lambda: run(inputs[0], out, "--timeline", "all", "--timeline-format", ext, "--limit", "3", "--max-tokens", "3"),
        )
        want = {}
        for library in LIBRARIES:
            for folder in ("steps", "timeline"):
                check(f"{folder} in {ext}", library, lambda: recorded(library, part(out, folder, ext), want))

    failed = 0
    whats = list(dict.fromkeys(c[0] for c in checks))
    columns = ["glmbatch", *LIBRARIES]
    print(f"{'':44}" + "".join(f"{c:>10}" for c in columns))
    for what in whats:
        cells = {library: problem for w, library, problem, _ in checks if w == what}
        print(f"{what:44}" + "".join(f"{'' if c not in cells else 'FAILED' if cells[c] else 'ok':>10}" for c in columns))
    for what, library, problem, _ in checks:
        if problem:
            failed += 1
            print(f"FAILED {what}, {library}: {problem}")
    versions = ", ".join(f"{m.__name__} {m.__version__}" for m in (pa, duckdb, pl, pd))
    print(f"{len(checks) - failed} passed, {failed} failed ({versions})")
    sys.exit(1 if failed else 0)


main()
