"""Damages files of every format that glmbatch reads and gives them to the program, which has 1 GiB and 20 s of a processor for each.
Run: interop/hostile.py FOLDER GLMBATCH [COUNT]. FORMATS, a regular expression, chooses some; an interrupt (INT) ends
the run with what was counted so far. A crash, a hang, an exit code that is not documented and more memory
fail, and so does a Parquet or Arrow file that is accepted which pyarrow refuses, checksums verified, or reads other
values of."""

import collections
import csv
import gzip
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

WORK, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
GIB, SECONDS = 1 << 30, 20
CODES = {0, 3, 4, 5, 6, 7, 8, 9, 75}
HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = os.path.join(HERE, "..", "datasets", "demo", "model")  # tokenizer and template
BASE = os.path.join(WORK, "base")


def call(args, stdin=None, limit=GIB, seconds=SECONDS):
    """The exit code (None: it had to be ended), what it said, and the most memory it had."""

    def limited():
        resource.setrlimit(resource.RLIMIT_DATA, (limit + GIB // 2, limit + GIB // 2))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    env = {**os.environ, "GOMEMLIMIT": "900MiB", "GOMAXPROCS": "1", "TMPDIR": WORK, "XDG_CACHE_HOME": WORK}
    with open(os.path.join(WORK, "said"), "w+b") as said, open(stdin or os.devnull, "rb") as given:
        p = subprocess.Popen([PROGRAM, *args], stdin=given, stdout=said, stderr=subprocess.STDOUT, env=env, preexec_fn=limited, cwd=WORK)
        signal.signal(signal.SIGALRM, lambda *_: p.kill())
        signal.alarm(10 * seconds)  # the machine may be busy
        _, status, usage = os.wait4(p.pid, 0)
        slow = signal.alarm(0) == 0 or usage.ru_utime + usage.ru_stime >= seconds
        p.returncode = os.waitstatus_to_exitcode(status)
        said.seek(max(0, said.seek(0, 2) - 20000))
        return (None if slow and p.returncode == -signal.SIGKILL else p.returncode), said.read().decode(errors="replace"), usage.ru_maxrss << 10


def made(*args, **more):
    code, said, _ = call(args, limit=4 * GIB, seconds=300, **more)
    if code:
        sys.exit(f"{' '.join(args)}: {code}: {said}")


def bases():
    """One good file of each format, and jobs' folders."""
    os.makedirs(BASE)
    rows = pa.table(
        {
            "prompt": ["What is %d plus 2?" % i if i % 5 else None for i in range(20)],
            "messages_too": [[{"role": "user", "content": "c%d" % i}] for i in range(20)],
            "temperature": pa.array([0.5] * 20, pa.float32()),
            "kind": pa.array(["a", "b"] * 10).dictionary_encode(),
        }
    )
    at = lambda name: os.path.join(BASE, name)
    for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        pq.write_table(rows, at(f"{codec}.parquet"), compression=codec, data_page_size=64, write_page_checksum=True, data_page_version="2.0" if codec in ("gzip", "lz4") else "1.0")
        if codec == "none":  # most files have no checksums
            pq.write_table(rows, at("plain.parquet"), compression=codec, data_page_size=64)
    with pa.ipc.new_stream(at("rows.arrow"), rows.schema) as w:
        w.write_table(rows, max_chunksize=7)
    with open(at("rows.jsonl"), "w") as f:
        for row in rows.to_pylist():
            f.write(json.dumps({**row, "more": {"a": [1, None, "é\u0000"]}}) + "\n")
    with open(at("rows.csv"), "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["prompt", "temperature", "more"])
        w.writerows([["What is %d\nplus \"2\"?" % i if i % 5 else "", 0.5, "é, and %d" % i] for i in range(20)])
    for name in ("rows.jsonl", "rows.csv"):
        with open(at(name), "rb") as f, gzip.open(at(name + ".gz"), "wb") as z:
            z.write(f.read())
    made("model", "synth", "--config", "tiny", "--layers", "4", "--experts", "8", "--tokenizer", TEXT, "--out", at("model"))
    trace = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}]
    for i in range(30):
        trace.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % (i // 10), "pid": 1, "tid": 1, "ts": i // 10 * 1000.0, "dur": 990.0})
        trace.append({"ph": "X", "cat": "kernel", "name": "gemm_%d<float, %d>" % (i % 4, i), "pid": 0, "tid": 7, "ts": i * 100.0 + 5.5, "dur": 80.25,
                      "args": {"device": 0, "stream": 7, "correlation": i, "grid": [i, 1, 1], "block": [128, 1, 1]}})
        trace.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": i * 100.0, "dur": 3.0, "args": {"correlation": i}})
        trace.append({"ph": "s", "id": i, "pid": 1, "tid": 1, "ts": i * 100.0, "cat": "ac2g", "name": "ac2g"})
    with open(at("trace.json"), "w") as f:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": trace}, f)
    with open(at("trace.json"), "rb") as f, gzip.open(at("trace.json.gz"), "wb") as z:
        z.write(f.read())
    db = sqlite3.connect(at("nsys.sqlite"))
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
               "globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, graphNodeId INTEGER)")
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)")
    db.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER)")
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i, "gemm_%d" % i) for i in range(8)])
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,7,?,1,?,?,1,1,1,128,1,1,NULL)", [(i * 1000, i * 1000 + 700, i, i % 8, i % 8) for i in range(60)])
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,1,?,0)", [(i * 1000 - 300, i * 1000 - 100, i) for i in range(60)])
    db.executemany("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,NULL,1)", [(i * 10000, i * 10000 + 9000, "step %d" % i) for i in range(6)])
    db.commit()
    db.close()
    made("run", at("none.parquet"), "--out", at("job"), "--tp", "1", "--limit", "8", "--max-tokens", "4", "--capture", "decode:first=1", "--max-errors", "9", "--quiet")
    made("run", at("none.parquet"), "--out", at("arrow"), "--tp", "1", "--limit", "8", "--max-tokens", "4", "--timeline-format", "arrow", "--max-errors", "9", "--quiet")
    made(*BEGUN, "--out", at("whole"), "--quiet")
    # A job that was ended with rows in its journal alone.
    begun = subprocess.Popen([PROGRAM, *BEGUN, "--out", at("begun"), "--quiet"], cwd=WORK, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while begun.poll() is None and not any(os.path.getsize(f) > 1500 for f in journal(at("begun"))):
        time.sleep(0.005)
    begun.kill()
    begun.wait()


BEGUN = ["run", "--demo", "--limit", "60", "--tp", "1", "--sync-interval", "10ms", "--timeline", "off"]


def journal(job):
    folder = os.path.join(job, "_journal")
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def wrong_rows(folder):
    """Whether a job that went on from a damaged folder has other rows than one that nobody stopped."""
    part = os.path.join("outputs", "part-00000.parquet")
    went_on = os.path.join(folder, "begun", part)
    return os.path.exists(os.path.join(folder, "begun", "_SUCCESS")) and pq.read_table(went_on) != pq.read_table(os.path.join(BASE, "whole", part))


def plain(v):
    if isinstance(v, float) and math.isnan(v):
        return "NaN"
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return [plain(x) for x in v] if isinstance(v, (list, tuple)) else v


def without_copy(path):
    """The values of a Parquet file whose Arrow schema goes by another name; None: pyarrow refuses it still."""
    if not path.endswith(".parquet"):
        return None
    with open(path, "rb") as f:
        data = f.read().replace(b"ARROW:schema", b"OTHER:schema")
    try:
        table = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read()
        return {n: plain(table[n].to_pylist()) for n in table.column_names}
    except Exception:
        return None


def wrong_values(path, folder):
    """Whether the outputs of a job have values of its input that pyarrow does not have."""
    part = os.path.join(folder, "o", "outputs", "part-00000.parquet")
    if not path.endswith((".parquet", ".arrow")) or not os.path.exists(part):
        return ""
    try:
        if path.endswith(".arrow"):
            want = pa.ipc.open_stream(path).read_all()
            want.validate(full=True)
        else:
            want = pq.ParquetFile(path, page_checksum_verification=True).read()
        want = {n: plain(want[n].to_pylist()) for n in want.column_names}
    except UnicodeDecodeError:
        return ""  # pyarrow reads it, Python has no such text; a row that needs it has an error
    except Exception as e:
        if "Invalid UTF8" in str(e):
            return ""
        # Who reads Parquet's own schema does not see that a copy of it as Arrow's is damaged:
        # pyarrow must read the file, and the same values, if it does not see the copy either.
        want = without_copy(path)
        if want is None:
            return "accepted, pyarrow refuses it: " + str(e)[:200]
    try:
        have = pq.ParquetFile(part).read()
    except Exception as e:
        return "pyarrow refuses its output: " + str(e)[:200]
    bad = [n for n, v in want.items() if n not in have.column_names or plain(have[n].to_pylist()) != v]
    return f"other values of {bad}" if bad else ""


def damaged(r, data, text):
    d = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 1, 2, 5))):
        if not d:
            break
        kind, at = r.choice((0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 7, 8)), r.randrange(len(d))
        if r.random() < 0.4:
            at = len(d) - 1 - min(len(d) - 1, r.randrange(400))  # footers
        if kind == 0:
            d[at] ^= 1 << r.randrange(8)
        elif kind == 1:
            d[at] = r.choice((0, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            d[at : at + r.choice((4, 8, 16))] = r.randbytes(8)
        elif kind == 3:
            del d[at:]
        elif kind == 4:
            del d[at : at + r.randrange(1, 64)]
        elif kind == 5:
            d[at:at] = bytes(d[at : at + r.randrange(1, 200)]) * r.choice((1, 3, 500))
        elif kind == 6:
            d[at : at + 8] = r.choice((b"\xff" * 8, b"\x00" * 8, (1 << 62).to_bytes(8, "little"), (1 << 31).to_bytes(4, "little")))
        elif kind == 7 and text:
            d[at:at] = r.choice((b"[" * 5000, b'{"a":' * 5000, b"1e999", b"-1", b"99999999999999999999", b"null", b'"', b"\\ud800", b"}", b"\x1b[2J", b"{% for a in range(99999999) %}", b"{{ x * 999999 }}"))
        else:
            a, b = sorted((at, r.randrange(len(d))))
            d[a:b] = d[a : min(b, a + 4096)][::-1]
    return bytes(d[: 64 << 20])


def model_with(name):
    def command(path, folder):
        os.mkdir(os.path.join(folder, "m"))
        for other in os.listdir(os.path.join(BASE, "model")):
            os.link(path if other == name else os.path.join(BASE, "model", other), os.path.join(folder, "m", other))
        return ["run", os.path.join(BASE, "none.parquet"), "--model", os.path.join(folder, "m"), "--out", os.path.join(folder, "o"), "--tp", "1", "--limit", "1", "--max-tokens", "1", "--quiet"]

    return command


def job_with(job, place, command):
    def run(path, folder):
        shutil.copytree(os.path.join(BASE, job), os.path.join(folder, job))
        shutil.copyfile(path, place(os.path.join(folder, job)))
        return command(os.path.join(folder, job))

    return run


def weights():
    return sorted(n for n in os.listdir(os.path.join(BASE, "model")) if n.endswith(".safetensors"))[0]


def formats():
    """Name, the good file, whether it is text, the share of all, and the command that reads it."""
    at = lambda name: os.path.join(BASE, name)
    dry = lambda p, _: ["run", p, "--dry-run"]
    go = lambda p, folder: ["run", p, "--out", os.path.join(folder, "o"), "--tp", "1", "--max-tokens", "1", "--timeline", "off", "--quiet"]
    torch = lambda p, folder: ["import", "torch", p, "--out", os.path.join(folder, "t.parquet")]
    first = lambda folder: next(os.path.join(folder, n) for n in sorted(os.listdir(folder)))
    part = lambda kind: (lambda job: first(os.path.join(job, kind)))
    for codec in ("plain", "none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        yield "parquet", at(codec + ".parquet"), False, 2, go
    yield "jsonl", at("rows.jsonl"), True, 8, go
    yield "jsonl.gz", at("rows.jsonl.gz"), False, 2, go
    yield "csv", at("rows.csv"), True, 6, go
    yield "csv.gz", at("rows.csv.gz"), False, 2, go
    yield "arrow", at("rows.arrow"), False, 4, lambda p, folder: (go("-", folder), p)
    yield "arrow to stdout", at("rows.arrow"), False, 4, lambda p, _: (["run", "-", "--stdout", "jsonl", "--tp", "1", "--limit", "2", "--max-tokens", "1", "--quiet"], p)
    yield "template", at("model/chat_template.jinja"), True, 8, lambda p, _: ["run", at("none.parquet"), "--chat-template", p, "--dry-run"]
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"):
        if os.path.exists(at("model/" + name)):
            yield name, at("model/" + name), True, 6, model_with(name)
    yield "safetensors", at("model/" + weights()), False, 6, model_with(weights())
    yield "sqlite", at("nsys.sqlite"), False, 8, lambda p, folder: ["import", "nsys", p, "--out", os.path.join(folder, "t.parquet")]
    yield "trace", at("trace.json"), True, 8, torch
    yield "trace.gz", at("trace.json.gz"), False, 2, torch
    for job in ("job", "arrow"):
        yield "timeline of " + job, part("timeline")(at(job)), False, 4, job_with(job, part("timeline"), lambda j: ["report", j])
        yield "steps of " + job, part("steps")(at(job)), False, 2, job_with(job, part("steps"), lambda j: ["report", j])
    yield "spans for a viewer", part("timeline")(at("job")), False, 2, lambda p, folder: ["export", "chrome", p, "--out", os.path.join(folder, "t.json.gz")]
    yield "outputs", part("outputs")(at("job")), False, 3, job_with("job", part("outputs"), lambda j: ["compare", j, at("job")])
    yield "capture", part("captures")(at("job")), False, 4, lambda p, _: ["replay", p, "--repeat", "1", "--warmup", "0"]
    yield "manifest", at("job/_manifest.json"), True, 3, job_with("job", lambda j: os.path.join(j, "_manifest.json"), lambda j: ["status", j])
    yield "manifest of a begun job", at("begun/_manifest.json"), True, 2, job_with("begun", lambda j: os.path.join(j, "_manifest.json"), lambda j: [*BEGUN, "--out", j, "--quiet"])
    for i, file in enumerate(journal(at("begun"))):
        yield "journal", file, False, 4, job_with("begun", lambda j, i=i: journal(j)[i], lambda j: [*BEGUN, "--out", j, "--quiet"])


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    bases()
    all_formats = [f for f in formats() if re.search(os.environ.get("FORMATS", ""), f[0])]
    whole = sum(f[3] for f in all_formats)
    r = random.Random(int(os.environ.get("SEED", "1")))
    r.shuffle(all_formats)  # one that is interrupted has some of each, over several seeds
    codes, most, problems = collections.defaultdict(collections.Counter), collections.Counter(), []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it would be ignored
    try:
        run(all_formats, whole, r, codes, most, problems)
    except KeyboardInterrupt:
        print("interrupted")
    total = sum(sum(c.values()) for c in codes.values())
    for name, c in codes.items():
        print(f"{name:24}{sum(c.values()):6} files, at most {most[name] >> 20} MiB; exit codes " + ", ".join(f"{k}: {n}" for k, n in sorted(c.items(), key=str)))
    print(f"{total - len(problems)} passed, {len(problems)} failed")
    sys.exit(1 if problems else 0)


def run(all_formats, whole, r, codes, most, problems):
    """Gives each format's share of damaged files to the program."""
    for name, good, text, share, command in all_formats:
        suffix = "." + ".".join(os.path.basename(good).split(".")[1:]) if "." in os.path.basename(good) else ""
        with open(good, "rb") as f:
            data = f.read()
        for i in range(-1, max(1, COUNT * share // whole)):
            folder = os.path.join(WORK, "one")
            os.makedirs(folder)
            path = os.path.join(folder, "x" + suffix)
            with open(path, "wb") as f:
                f.write(damaged(r, data, text) if i >= 0 else data)
            args, stdin = command(path, folder), None
            if isinstance(args, tuple):
                args, stdin = args
            code, said, memory = call(args, stdin)
            if i < 0:
                if code not in (0, 8, 75):
                    sys.exit(f"{name}: the good file: {code}: {said}")
                shutil.rmtree(folder)
                continue
            codes[name][code] += 1
            most[name] = max(most[name], memory)
            why = "a hang" if code is None else "a crash" if "goroutine " in said or "panic" in said or code < 0 else "beyond memory" if memory > GIB else "an unknown exit code" if code not in CODES else "other rows" if wrong_rows(folder) else wrong_values(path, folder)
            if why:
                kept = os.path.join(WORK, "bad-%d%s" % (len(problems), suffix))
                shutil.copyfile(path, kept)
                problems.append(f"{name}: {why}: exit code {code}, {memory >> 20} MiB: {kept}: {said[-300:]!r}")
                print(problems[-1], flush=True)
            shutil.rmtree(folder)


main()
