"""Checks sampling parameters against numpy: WORK GLMBATCH [DEVICE]. ROWS=1600 checks so many
rows, of which each has about 18 random tokens; 400 without it.

Jobs on the demo checkpoint are captured step by step. From a step's logits, the row's
parameters and the tokens that it had, the definitions of vLLM's sampler give the token
and its log-probabilities again. Random draws are those of Philox, and their ranks among
the probabilities must be spread evenly. Where a response ends follows from its tokens' texts,
which are read from the tokenizer's file."""

import codecs
import glob
import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.ipc
import pyarrow.parquet as pq

WORK, PROGRAM, *DEVICE = sys.argv[1:]
DEVICE = ["--device", *DEVICE] if DEVICE else []
F = np.float32
PARAMS = np.dtype([(n, "f4") for n in ("temperature", "top_p", "min_p", "repetition")] + [(n, "i4") for n in ("top_k", "logprobs", "seen", "last")] + [("seed", "u8"), ("counter", "u8")])
STEERING = np.dtype([(n, "f4") for n in ("presence", "frequency")] + [(n, "i4") for n in ("counts", "mask", "allowed", "entries", "biases", "labels", "forced", "last")])
SAMPLED = np.dtype([("token", "i4"), ("logprob", "f4"), ("ids", "i4", 20), ("logps", "f4", 20)])
failures = []


def check(ok, what):
    if not ok:
        failures.append(what)


def philox(key, counter):
    """The first 53 bits of Philox4x32-10 as a number below 1."""
    x = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [b >> 32 ^ x[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ x[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return ((x[1] << 32 | x[0]) >> 11) / 2**53


class Vocabulary:
    """What the definitions need of the demo's tokenizer."""

    def __init__(self, ends):
        self.ends = ends
        with open(os.path.join(os.path.dirname(__file__), "..", "datasets", "demo", "model", "tokenizer.json")) as f:
            data = json.load(f)
        self.added = {a["content"]: a["id"] for a in data["added_tokens"]}
        printed = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
        byte = {chr(b): b for b in printed}
        byte.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in printed)})
        self.bytes = {i: bytes(byte[c] for c in t) for t, i in data["model"]["vocab"].items()}
        self.bytes.update({i: b"" for i in self.added.values()})


def forced(p, prompt, made, vocabulary):
    """The token that a thinking budget has come now; -1: none."""
    think, close = vocabulary.added["<think>"], vocabulary.added["</think>"]
    ids = prompt + made
    begin = len(prompt)
    for i, t in enumerate(prompt):
        begin = i + 1 if t == think else len(prompt) if t == close else begin
    if begin == len(prompt) and (not prompt or prompt[-1] != think):
        if think not in made:
            return -1
        begin += made.index(think) + 1
    over = close in ids[begin:] or len(ids) - begin < p["thinking_token_budget"]
    return -1 if over else close


def ended(p, ids, vocabulary):
    """The text of so many tokens, and the stop text that ended it; None: none did."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    for n, t in enumerate(ids + [None]):
        before = len(text)
        text += decoder.decode(vocabulary.bytes[t]) if t is not None else decoder.decode(b"", True)
        if t is not None and n < p.get("min_tokens", 0):
            continue
        new = [(at, i, s) for i, s in enumerate(p["stop"]) if (at := text.find(s, max(0, before - len(s) + 1))) >= 0]
        if new:
            at, _, s = min(new)
            return text[: at + len(s) * p.get("include_stop_str_in_output", False)], s, min(n + 1, len(ids))
    return text, None, len(ids)


def processed(logits, p, prompt, made, vocabulary):
    """vLLM's logits processors and penalties, in its order, in float32."""
    x = logits.astype(F).copy()
    if p.get("allowed_token_ids"):
        keep = np.zeros(len(x), bool)
        keep[p["allowed_token_ids"]] = True
        x[~keep] = -np.inf
    for word in p.get("bad_word_ids", []):
        n = len(word) - 1
        if n <= len(made) and made[len(made) - n :] == word[:n]:
            x[word[-1]] = -np.inf
    if len(made) < p.get("min_tokens", 0):
        x[sorted(set(vocabulary.ends) | set(p.get("stop_token_ids", [])))] = -np.inf
    for token, bias in p.get("logit_bias", {}).items():
        x[int(token)] += F(bias)
    repetition = F(p.get("repetition_penalty", 1))
    if repetition != 1:
        seen = np.zeros(len(x), bool)
        seen[list(prompt) + made] = True
        x = np.where(seen, np.where(x > 0, x / repetition, x * repetition), x).astype(F)
    counts = np.bincount(np.array(made, dtype=np.int64), minlength=len(x)).astype(F)
    x = (x - F(p.get("frequency_penalty", 0)) * counts).astype(F)
    x = (x - F(p.get("presence_penalty", 0)) * (counts > 0).astype(F)).astype(F)
    return x


def probabilities(x, p):
    """Temperature, top-k, top-p, min-p; zero where a token is cut."""
    e = np.exp((x.astype(np.float64) - x.max()) / p["temperature"])
    order = np.argsort(-x, kind="stable")
    keep = order[: p["top_k"]] if 0 < p.get("top_k", 0) < len(order) else order
    if p.get("top_p", 1) < 1:
        share = np.cumsum(e[keep]) / e[keep].sum()
        keep = keep[: int(np.searchsorted(share, p["top_p"])) + 1]
    keep = keep[e[keep] >= p.get("min_p", 0)]
    q = np.zeros(len(x))
    q[keep] = e[keep]
    return q / q.sum()


def run(name, rows, *flags):
    """Runs rows and returns their outputs, in order."""
    path = os.path.join(WORK, name + ".jsonl")
    with open(path, "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
    out = os.path.join(WORK, name)
    command = [PROGRAM, "run", path, "--out", out, "--quiet", "--token-ids", "--max-errors", "0", "--timeline", "off", *DEVICE, *flags]
    subprocess.run(command, check=True)
    return out, outputs(out)


def outputs(out):
    rows = []
    for part in sorted(glob.glob(os.path.join(out, "outputs", "*.parquet"))):
        rows += pq.read_table(part).to_pylist()
    return rows


class Step:
    """The sampled rows of a captured step."""

    def __init__(self, path):
        table = pyarrow.ipc.open_file(path).read_all().select(["part", "name", "call", "index", "n", "top_k", "data"]).to_pylist()
        data = {}
        for r in table:
            if r["part"] == "input" and r["name"] in ("params", "steering", "logit_rows", "tokens", "seq", "pos"):
                data[r["name"]] = r["data"]
        self.params = np.frombuffer(data["params"], PARAMS)
        self.steering = np.frombuffer(data["steering"], STEERING) if "steering" in data else None
        call = next((r for r in table if r["part"] == "call" and r["name"] == "sample"), None)
        self.rows = 0
        if call is None:
            return
        outs = {r["call"]: r["data"] for r in table if r["part"] == "output"}
        self.sampled = np.frombuffer(outs[call["call"]], SAMPLED)
        self.logits = np.frombuffer(outs[call["call"] - 1], F).reshape(len(self.params), call["n"])[:, : call["top_k"]]
        self.rows = len(self.params)

    def forced(self, i):
        return int(self.steering["forced"][i]) if self.steering is not None else -1


def log_softmax(x):
    x = x.astype(np.float64)
    return x - x.max() - math.log(np.exp(x - x.max()).sum())


def check_logprobs(what, got, logits, own, wanted, labels):
    """A row's log-probabilities, which are of the logits as they came."""
    logp = log_softmax(logits)
    check(abs(got["logprob"] - logp[own]) < 1e-5, f"{what}: logprob {got['logprob']} of token {own}, numpy has {logp[own]}")
    ids = list(np.argsort(-logits, kind="stable")[:wanted]) + labels
    check(list(got["ids"][: len(ids)]) == ids, f"{what}: alternatives {got['ids'][: len(ids)]}, numpy has {ids}")
    if ids:
        check(np.abs(got["logps"][: len(ids)] - logp[ids]).max() < 1e-5, f"{what}: log-probabilities {got['logps'][: len(ids)]}")


def check_draws(rows, out, answers, vocabulary):
    """Every sampled token of a job from its step's logits."""
    by_seed = {r["seed"]: (rows[r["row_index"]], r) for r in answers}
    checked, random, edges, ranks = {}, 0, 0, []
    spread = np.random.default_rng(1)
    for path in sorted(glob.glob(os.path.join(out, "captures", "*.arrow"))):
        step = Step(path)
        for i in range(step.rows):
            if step.forced(i) >= 0 and int(step.params["seed"][i]) == 0:
                continue  # of a prompt
            row, answer = by_seed[int(step.params["seed"][i])]
            p, at = row["sampling_params"], int(step.params["counter"][i]) - len(row["ids"])
            made = answer["token_ids"][:at]
            if at > len(answer["token_ids"]):
                continue  # behind the end: launched ahead
            what = f"{row['kind']}, row {answer['row_index']}, token {at}"
            checked[row["kind"]] = checked.get(row["kind"], 0) + 1
            token = int(step.sampled["token"][i])
            if "thinking_token_budget" in p:
                want = forced(p, row["ids"], made, vocabulary)
                check(step.forced(i) == want, f"{what}: {step.forced(i)} is forced, its budget wants {want}")
            if step.forced(i) >= 0:
                check(token == step.forced(i), f"{what}: {token} is not the forced {step.forced(i)}")
                continue
            x = processed(step.logits[i], p, row["ids"], made, vocabulary)
            if p.get("temperature", 0) == 0:
                check(token == int(np.argmax(x)), f"{what}: token {token}, numpy has {int(np.argmax(x))}")
            else:
                q = probabilities(x, p)
                u = philox(int(step.params["seed"][i]), int(step.params["counter"][i]))
                below = np.cumsum(q)
                want = int(np.searchsorted(below, u, side="right"))
                random += 1
                if token != want:  # allowed where rounding decides
                    near = min(abs(below[token] - u), abs(below[token] - q[token] - u))
                    edges += 1
                    check(q[token] > 0 and near < 1e-5, f"{what}: token {token}, numpy draws {want} with {u}, {near} from its edge")
                ranks.append(below[token] - q[token] * spread.random())
            if "logprobs" in p or p.get("logprob_token_ids"):
                check_logprobs(what, step.sampled[i], step.logits[i], token, p.get("logprobs", 0), p.get("logprob_token_ids", []))
    bins = np.histogram(ranks, 50, (0, 1))[0]
    chi2 = ((bins - len(ranks) / 50) ** 2 / (len(ranks) / 50)).sum()
    check(chi2 < 100, f"draws are not spread as their probabilities: chi-square {chi2:.1f} of 49 degrees")
    print(f"{sum(checked.values())} tokens by numpy, {random} of them random ({edges} at an edge of rounding, chi-square {chi2:.1f} of 49 degrees):", ", ".join(f"{k} {n}" for k, n in sorted(checked.items())))
    return checked, random


KINDS = {
    "plain": {},
    "presence_penalty": {"presence_penalty": 1.5},
    "frequency_penalty": {"frequency_penalty": -0.75},
    "all penalties": {"presence_penalty": -0.5, "frequency_penalty": 1.25, "repetition_penalty": 1.3},
    "min_tokens": {"min_tokens": 12, "stop_token_ids": [65, 66, 67, 68]},
    "logit_bias": {"logit_bias": {"65": 4.5, "70": -100, "75": 100}},
    "logit_bias of few": {"logit_bias": {str(i): 6 for i in range(60, 90)}},
    "allowed_token_ids": {"allowed_token_ids": [64, 65, 66, 67, 70, 75]},
    "bad_words": {"allowed_token_ids": [64, 65, 66, 67], "bad_words": ["aa", "bcb", "d", "abcd"]},
    "logprob_token_ids": {"logprob_token_ids": [5, 1999, 65], "logprobs": 3},
    "all": {"presence_penalty": 1, "frequency_penalty": 0.5, "repetition_penalty": 0.8, "min_tokens": 5, "logit_bias": {"65": 3}, "bad_words": ["ab"], "top_p": 0.9, "top_k": 40, "min_p": 0.01, "logprobs": 2, "logprob_token_ids": [9]},
}


# Rows of a given text, without a template: it opens what the model thinks, or has closed it.
THOUGHTS = ["", "<think>", "<think>one two", "<think>a</think>b", "</think><think> x", "<think>c<think>y"]


# What responses follow, with parameters that have a part in it.
GUIDES = [
    {"guided_choice": ["yes", "no", "perhaps not"], "min_tokens": 2},
    {"guided_regex": "[a-z]{3,9}( [a-z]{1,5})?", "bad_words": ["e"]},
    {"response_format": {"type": "json_object"}, "presence_penalty": 1},
    {"guided_json": {"type": "array", "items": {"type": "string", "maxLength": 7}, "maxItems": 3}, "n": 2},
    {"guided_grammar": 'root ::= "(" [0-9]+ ")"', "logit_bias": {"5": 3}},
]


def guided(count):
    rows = []
    for i in range(count):
        p = dict(GUIDES[i % len(GUIDES)], max_tokens=30, temperature=1)
        rows.append({"prompt": f"Say {i}", "kind": "guided", "sampling_params": p})
    return rows


def thinking(count):
    """Rows with a budget of what they think, whose marks are likely to come."""
    rows = []
    for i in range(count):
        p = {"thinking_token_budget": i % 7, "max_tokens": 12, "ignore_eos": True, "logit_bias": {"2037": 12, "2038": 9}}
        if i % 5:
            p["temperature"] = 1.4
        text = f"[gMASK]Question {i} {THOUGHTS[i // 7 % len(THOUGHTS)]}"
        rows.append({"prompt": text, "kind": "thinking_token_budget", "sampling_params": p})
    return rows


def stopped(count, vocabulary):
    """Rows that end with a text or a token, the text in them or not."""
    rows = []
    stops = [["e"], ["th", "e", "i"], ["x", " the", "1"], ["and ", "nd"], ["\n", "?"], ["é", "8", "o"]]
    for i in range(count):
        p = {"max_tokens": 24, "ignore_eos": True, "temperature": 1.3}
        if i % 4 == 3:
            p["stop_token_ids"] = list(range(64 + i % 31, 2000, 31))
        else:
            p["stop"] = stops[i % len(stops)]
            p["min_tokens"] = i % 3 * 4
        if i % 2:
            p["include_stop_str_in_output"] = True
        rows.append({"prompt": f"[gMASK]Tell me {i}", "kind": "stop", "sampling_params": p})
    out, answers = run("stops", rows, "--tp", "1", "--raw")
    reasons = 0
    for r, a in zip(rows, answers):
        p, ids, what = r["sampling_params"], a["token_ids"], f"stop, row {a['row_index']}"
        stop, kept = p.get("stop_token_ids"), p.get("include_stop_str_in_output", False)
        if stop:
            last = int(a["stop_reason"]) if a["stop_reason"] else None
            check(not any(t in stop for t in ids[: len(ids) - (kept and last is not None)]), f"{what}: goes on behind {ids}")
            check((last in stop) == (a["finish_reason"] == "stop"), f"{what}: {a['stop_reason']} ended it, {a['finish_reason']}")
            check(not kept or last is None or ids[-1] == last, f"{what}: {ids} do not have their last, {last}")
            text = b"".join(vocabulary.bytes[t] for t in ids).decode("utf-8", "replace")
        else:
            text, last, used = ended(p, ids, vocabulary)
            check(a["stop_reason"] == last and used == len(ids), f"{what}: {a['stop_reason']!r} ended it, not {last!r} after {used}")
            check((last is not None) == (a["finish_reason"] == "stop"), f"{what}: {a['finish_reason']}")
        check(a["response"] == text, f"{what}: {a['response']!r}, not {text!r}")
        reasons += last is not None
    print(f"{reasons} of {count} rows ended by a text or a token that they name, as their tokens' texts say")


def rows_of(count):
    """Rows of all kinds, with random draws and without."""
    rows = []
    for i in range(count):
        kind = list(KINDS)[i % len(KINDS)]
        p = dict(KINDS[kind], max_tokens=20, ignore_eos=kind != "min_tokens")
        if (i // len(KINDS)) % 8:
            p["temperature"] = [0.7, 1.0, 1.6][i % 3]
        rows.append({"prompt": f"Question {i}: {['river', 'stone', 'apple'][i % 3]} {i * i}", "kind": kind, "sampling_params": p})
    return rows


def same(what, rows, want, *flags, columns=()):
    out, have = run(what.replace(" ", "-"), rows, *flags)
    columns = columns or [c for c in want[0] if c not in ("run_id",)]
    differ = [i for i, (a, b) in enumerate(zip(have, want)) if any(a[c] != b[c] for c in columns)]
    check(len(have) == len(want) and not differ, f"{what}: {len(differ)} rows differ, the first is {differ[:1]}")
    return have


def resumed(rows, want):
    """A job that is ended again and again and goes on each time."""
    path, out = os.path.join(WORK, "resumed.jsonl"), os.path.join(WORK, "resumed")
    with open(path, "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
    stops = 0
    for wait in (0.6, 0.8, 1.0, 1.2, 600):
        job = subprocess.Popen([PROGRAM, "run", path, "--out", out, "--quiet", "--token-ids", "--grace", "0s", "--sync-interval", "20ms", "--max-seqs", "8", *DEVICE, "--tp", "1"], stderr=subprocess.DEVNULL)
        try:
            job.wait(wait)
            break
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGTERM)
            job.wait()
            stops += 1
    have = outputs(out)
    columns = [c for c in want[0] if c not in ("run_id",)]
    differ = [i for i, (a, b) in enumerate(zip(have, want)) if any(a[c] != b[c] for c in columns)]
    check(len(have) == len(want) and not differ, f"resumed {stops} times: {len(differ)} of {len(have)} rows differ")
    return stops


def scored(rows_wanted=12):
    """The log-probabilities of given texts, and of two labels for each row."""
    rows = [{"prompt": f"Route this ticket: number {i} " + "is lost " * (i * 3 % 11), "kind": "text", "sampling_params": {"prompt_logprobs": 3, "max_tokens": 0}} for i in range(rows_wanted)]
    out, answers = run("scored", rows, "--tp", "1", "--prompt-logprobs", "0", "--capture", "every=1", "--raw")
    given = {}
    for path in sorted(glob.glob(os.path.join(out, "captures", "*.arrow"))):
        step = Step(path)
        for i in range(step.rows):
            if step.forced(i) >= 0:
                logp = log_softmax(step.logits[i])
                top = np.argsort(-step.logits[i], kind="stable")[:3]
                given[(step.forced(i), float(step.sampled["logprob"][i]), tuple(int(t) for t in top))] = logp[step.forced(i)]
    n = 0
    for a in answers:
        check(len(a["prompt_logprobs"]) == a["prompt_tokens"] - 1 and a["completion_tokens"] == 0, f"row {a['row_index']}: {len(a['prompt_logprobs'])} entries of {a['prompt_tokens']} tokens")
        for k, top in zip(a["prompt_logprobs"], a["prompt_top_logprobs"]):
            want = given.get((k["id"], k["logprob"], tuple(t["id"] for t in top)))
            check(want is not None and abs(want - k["logprob"]) < 1e-5, f"row {a['row_index']}: {k}, numpy has {want}")
            n += 1
    labels = [19, 20]
    rows = [{"prompt": f"Is {i} even?", "sampling_params": {"max_tokens": 1, "logprob_token_ids": labels}} for i in range(200)]
    _, answers = run("judge", rows, "--tp", "1")
    read = sum([t["id"] for t in a["top_logprobs"][0]] == labels for a in answers)
    check(read == 200, f"a judge reads its labels in {read} of 200 rows")
    print(f"{n} tokens of given texts by numpy, {read} of 200 rows with both labels")


def token_ids(rows, *flags):
    """Prompts as tokens, and bad words, as the program makes them of text."""
    out, answers = run("given" + "".join(flags), [{"prompt": r["prompt"], "sampling_params": {"prompt_logprobs": 0, "max_tokens": 0}} for r in rows], "--tp", "1", "--prompt-logprobs", "0", *flags)
    for r, a in zip(rows, answers):
        r["ids"] = [None] + [k["id"] for k in a["prompt_logprobs"]]
    marks = "[gMASK]"  # the first of the tokens, of the template's or the text's
    words = sorted({w for r in rows for w in r["sampling_params"].get("bad_words", [])})
    texts = [" " * behind + w for w in words for behind in (0, 1)] + [marks]
    _, answers = run("words" + "".join(flags), [{"prompt": "x" + t, "sampling_params": {"prompt_logprobs": 0, "max_tokens": 0}} for t in texts], "--tp", "1", "--raw", "--prompt-logprobs", "0")
    ids = {t: [k["id"] for k in a["prompt_logprobs"]] for t, a in zip(texts, answers)}
    for r in rows:
        r["ids"][0] = ids[marks][0]
        r["sampling_params"]["bad_word_ids"] = []
        for w in r["sampling_params"].get("bad_words", []):
            plain, behind = ids[w], ids[" " + w]
            r["sampling_params"]["bad_word_ids"] += [plain] + ([behind] if len(plain) == len(behind) and plain[0] != behind[0] else [])


def main():
    began = time.time()
    count = int(os.environ.get("ROWS", 400 if not DEVICE else 200))
    rows, thoughts = rows_of(count), thinking(count // 5)
    token_ids(rows)
    token_ids(thoughts, "--raw")
    sent = [{"prompt": r["prompt"], "kind": r["kind"], "sampling_params": {k: v for k, v in r["sampling_params"].items() if k != "bad_word_ids"}} for r in rows + thoughts]
    capture = ("--tp", "1", "--max-seqs", "64", "--capture", "every=1", "--capture-kv", "seeded")
    out, answers = run("draws", sent[:count], *capture)
    with open(os.path.join(out, "_manifest.json")) as f:
        ends = [int(t) for t in json.load(f).get("settings", {}).get("end tokens", "[]").strip("[]").split(",") if t]
    vocabulary = Vocabulary(ends)
    check_draws(rows, out, answers, vocabulary)
    out, answers = run("thoughts", sent[count:], *capture, "--raw")
    kinds, _ = check_draws(thoughts, out, answers, vocabulary)
    closed = sum(vocabulary.added["</think>"] in a["token_ids"] for a in answers)
    print(f"{closed} of {len(thoughts)} rows with a budget closed what they think")
    stopped(count // 2, vocabulary)
    some = sent[:100] + guided(10)
    out, want = run("some", some, "--tp", "1")
    for flags in (["--max-seqs", "1"], ["--max-seqs", "7", "--max-batch-tokens", "9"], ["--kv-tokens", "512"], ["--prefix-sharing", "off"]):
        same("same " + " ".join(flags), some, want, "--tp", "1", *flags)
    # Sums over ranks have another order, so that 8 ranks are compared among themselves.
    _, eight = run("eight", some, "--tp", "8")
    same("8 ranks", some, eight, "--tp", "8", "--max-seqs", "5")
    stops = resumed(some, want)
    print(f"110 rows have the same bits in 5 other ways to run them, and ended and begun again {stops} times")
    scored()
    for f in failures[:20]:
        print("FAILED", f)
    print(f"{len(failures)} failures, {time.time() - began:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
