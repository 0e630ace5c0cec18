"""Runs commands that write one path at the same time, and in a folder in which another user has planted links.
Run: interop/together.py FOLDER GLMBATCH [TIMES]. Each time the path has either's whole result, or one of the two said
clearly why not; and nothing outside of the folder is touched. The second part needs root."""

import json
import os
import shutil
import subprocess
import sys

WORK, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TIMES = int(sys.argv[3]) if len(sys.argv) > 3 else 100
NOBODY = 65534
problems = []


def start(args, cwd=WORK):
    return subprocess.Popen([PROGRAM, *args], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def call(args):
    p = start(args)
    said = p.communicate()[0]
    return p.returncode, said


def trace(name, kernels):
    events = [{"ph": "X", "cat": "kernel", "name": f"gemm_{i % 5}", "pid": 0, "tid": 7, "ts": i * 100.0, "dur": 80.0, "args": {"device": 0, "stream": 7}} for i in range(kernels)]
    with open(os.path.join(WORK, name), "w") as f:
        json.dump({"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events}, f)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def both(what, commands, out, alone):
    """Two commands at once, TIMES times: the file is what one of them writes alone."""
    whole = codes = 0
    for _ in range(TIMES):
        running = [start(c) for c in commands]
        ends = [(p.communicate()[0], p.returncode) for p in running]
        clear = all(code == 0 or "glmbatch: " in said and "panic" not in said for said, code in ends)
        codes += sum(code != 0 for _, code in ends)
        ok = os.path.exists(out) and read(out) in alone
        whole += ok
        left = [n for n in os.listdir(os.path.dirname(out)) if n.startswith(".")]
        if not ok or not clear or left:
            problems.append(f"{what}: {ends}, left {left}")
        os.remove(out)
    print(f"{what:28}{TIMES} times two: {whole} whole, {codes} of {2 * TIMES} ended with an error")


def files_at_once():
    trace("a.json", 300)
    trace("b.json", 500)
    place = os.path.join(WORK, "place")
    os.makedirs(place)
    for what, name, command in (
        ("import torch", "t.parquet", lambda side, out: ["import", "torch", side + ".json", "--out", out]),
        ("report --html", "page.html", lambda side, out: ["report", side + ".parquet", "--html", out]),
        ("export chrome", "v.json", lambda side, out: ["export", "chrome", side + ".parquet", "--out", out]),
    ):
        alone = []
        for side in "ab":
            out = os.path.join(WORK, f"{side}{os.path.splitext(name)[1]}") if what == "import torch" else os.path.join(WORK, side + name)
            code, said = call(command(side, out))
            if code:
                sys.exit(f"{what}: {said}")
            alone.append(read(out))
        out = os.path.join(place, name)
        both(what, [command("a", out), command("b", out)], out, alone)


JOB = ["run", "--demo", "--limit", "6", "--tp", "1", "--max-tokens", "3", "--timeline", "off", "--quiet"]


def jobs_at_once():
    part = os.path.join("outputs", "part-00000.parquet")
    code, said = call([*JOB, "--out", "alone"])
    if code:
        sys.exit(said)
    alone, codes, whole = read(os.path.join(WORK, "alone", part)), {}, 0
    for i in range(TIMES):
        out = os.path.join(WORK, "job")
        ends = [(p.communicate()[0], p.returncode) for p in [start([*JOB, "--out", out]) for _ in range(2)]]
        pair = tuple(sorted(code for _, code in ends))
        codes[pair] = codes.get(pair, 0) + 1
        ok = read(os.path.join(out, part)) == alone and os.path.exists(os.path.join(out, "_SUCCESS"))
        whole += ok
        if not ok or pair not in ((0, 0), (0, 4)):
            problems.append(f"jobs: {ends}")
        shutil.rmtree(out)
    print(f"{'run':28}{TIMES} times two: {whole} whole; exit codes " + ", ".join(f"{k}: {n}" for k, n in sorted(codes.items())))


def planted():
    """Links of another user, in a folder of that user, at every name that the commands write."""
    if os.geteuid():
        print("planted links: not tried, this is not root")
        return
    victims = os.path.join(WORK, "victims")
    shared = os.path.join(WORK, "shared")
    names = ["t.parquet", "page.html", "v.json", "job"]
    within = ["outputs", "steps", "timeline", "captures", "_journal", "_manifest.json", "_SUCCESS", ".lock", "_poison"]
    for target in [*names[:3], "job", *[f"job/{n}" for n in within]]:
        for path in (victims, shared):
            shutil.rmtree(path, ignore_errors=True)
        os.makedirs(os.path.join(victims, "folder"))
        victim = os.path.join(victims, "file")
        with open(victim, "w") as f:
            f.write("precious")
        os.makedirs(os.path.join(shared, "job") if "/" in target else shared)
        folder = target.split("/")[-1] in ("job", "outputs", "steps", "timeline", "captures", "_journal")
        link = os.path.join(shared, target)
        os.symlink(os.path.join(victims, "folder") if folder else victim, link)
        for path in (shared, os.path.join(shared, "job"), link):
            if os.path.lexists(path):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        os.chmod(shared, 0o777)
        command = {
            "t.parquet": ["import", "torch", "a.json", "--out", link],
            "page.html": ["report", "a.parquet", "--html", link],
            "v.json": ["export", "chrome", "a.parquet", "--out", link],
        }.get(target, [*JOB[:-1], "--capture", "decode:first=1", "--out", os.path.join(shared, "job")])
        code, said = call(command)
        touched = read(victim) != b"precious" or os.listdir(os.path.join(victims, "folder")) or len(os.listdir(victims)) != 2
        said = said.strip().splitlines()[-1] if said.strip() else ""
        print(f"link at {target:20} exit code {code}: {said.replace(WORK, '…')[:110]}")
        if touched or "panic" in said or code < 0:
            problems.append(f"planted {target}: touched {touched}, exit code {code}, {said}")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    files_at_once()
    jobs_at_once()
    planted()
    for p in problems[:20]:
        print(p[:800])
    print(f"{'not ' if problems else ''}all is whole")
    sys.exit(1 if problems else 0)


main()
