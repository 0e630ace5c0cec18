"""Compares `glmbatch model tokenize` with Hugging Face's tokenizers library, and
with --chat with Jinja2.

usage: compare.py GLMBATCH SCRATCH NAME=FOLDER...   each folder with a tokenizer.json
and a chat template

Of the first, variants are made in SCRATCH that use what it does not: other
pre-tokenizers, ignore_merges, and added tokens with every flag.

The corpus is made here: the sources around this file, texts of many scripts,
every code point, odd white space, special tokens, and random mixes of all that,
the same each time. For each tokenizer, the ids, the decoded text and the text
decoded without special tokens must be equal for every document. Exit code 1 if
one is not.
"""

import json
import pathlib
import random
import subprocess
import sys
import time

import tokenizers
from tokenizers import Tokenizer

import chat_golden

ROOT = pathlib.Path(__file__).resolve().parents[2]

PHRASES = [
    "The quick brown fox jumps over the lazy dog.", "I don't, you'LL, we'Ve, it'S, they'd, 'ſ o'ſ", "naïve café Straße ŁÓDŹ Ærøskøbing",
    "e\u0301 vs \u00e9; A\u030a vs \u00c5; q\u0323\u0307 vs q\u0307\u0323; \u1e69 \u0073\u0323\u0307 \u0344 \u2126 \u212b", "한국어 문장입니다. \u1112\u1161\u11ab\u1100\u1173\u11af",
    "你好,世界!今天天气很好。", "こんにちは世界。カタカナ ガ ヴ か\u3099", "Привет, мир! Как дела?", "שָׁלוֹם עולם", "مرحبا بالعالم ١٢٣٤٥", "नमस्ते दुनिया क़ख़", "สวัสดีชาวโลก",
    "😀👍🏽👨‍👩‍👧‍👦🇫🇷 ❤️‍🔥", "x = [1, 22, 333, 4444, 55555]; y = 3.14159e-10", "Ⅷ ½ ² ① ٣ 五 ৪", "{\"a\": [1, 2, {\"b\": null}], \"c\": \"\\u00e9\"}", "https://example.org/a?b=c&d=%20#e",
    "def f(x):\n\treturn x ** 2  # ok\n\n\nclass A:\n    pass\n", "\r\n\r\n \r\n\t\t x \n", "   leading and trailing   ", "\u00a0nbsp\u2003em\u3000wide\u2028line\u2029para\u0085nel", "\u200b\u200d\ufeff\u00ad",
    "snake_case CamelCase kebab-case __dunder__ 'quoted' \"double\"", "$1,234.56 (50%) — “quotes” … ‘x’", "\u0000\u0001\u001f\u007f", "ﬁ ﬂ ﬀ ĳ ǆ ǅ İstanbul ıI ẞ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 𐍈 𠀀𠀁",
]


def documents(special, rng):
    """Yields (kind, text)."""
    for p in sorted(ROOT.rglob("*.go")):
        if not {".cache", ".venv"} & set(p.relative_to(ROOT).parts):
            yield "go source", p.read_text(encoding="utf-8")
    for p in sorted(ROOT.glob("*.md")):
        yield "prose", p.read_text(encoding="utf-8")
    for p in PHRASES:
        yield "phrase", p
        yield "phrase", " " + p + "\n"
        yield "phrase", p * 3
    for a in PHRASES:
        for b in PHRASES:
            yield "pair", a + b
    for base in range(0, 0x20000, 64):
        chars = [chr(c) for c in range(base, base + 64) if not 0xD800 <= c < 0xE000]
        if chars:
            yield "code points", "".join(chars)
            yield "code points", "1".join(chars) + " ".join(chars[:1000:3])
    for base in range(0x20000, 0x110000, 4096):
        yield "code points", "".join(chr(c) for c in range(base, base + 4096, 1 if base < 0x32000 or base == 0xE0000 else 37))
    for t in special:
        yield "special", t
        yield "special", f"a {t} b{t}{t}\n{t[:-1]}{t} {t}x"
    for n in (1, 2, 3, 40, 300, 3000):
        for c in ("a", " ", "\n", "1", ".", "é", "你", "\u0301", "😀", "a ", " \n", "'s"):
            yield "repeats", c * n
    marks = [chr(c) for c in range(0x300, 0x370)] + ["\u0591", "\u05b0", "\u064b", "\u0e38", "\u3099", "\u0345"]
    for n in (5, 29, 30, 31, 40, 200):
        for _ in range(20):
            yield "marks", "a" + "".join(rng.choice(marks) for _ in range(n)) + "b"
    pools = [
        [chr(c) for c in range(32, 127)], list(" \n\r\tabcXYZ0123456789'’.,!?-_"), [chr(c) for c in range(0xA0, 0x600)],
        [chr(c) for c in range(0x4E00, 0x5200)] + list("，。 "), [chr(c) for c in range(0x1F300, 0x1F700)] + ["\u200d", "\ufe0f"],
        ["'s", "'LL", " ", "  ", "\n", "12", "7", "word", "É", "...", "\u2028", "\u0345", "_", "ſ", "'"] + special[:4],
    ]
    for i in range(2000):
        n = rng.randint(1, 60)
        if i % 4 == 3:
            cs = [rng.choice((rng.randint(0x80, 0xD7FF), rng.randint(0xE000, 0xFFFF), rng.randint(0x10000, 0x1FFFF), rng.randint(0, 0x10FFFF))) for _ in range(n)]
            yield "random", "".join(chr(c) for c in cs if not 0xD800 <= c < 0xE000)
        else:
            yield "random", "".join(rng.choice(rng.choice(pools)) for _ in range(n))


def run(glmbatch, folder, texts, *flags):
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    start = time.perf_counter()
    out = subprocess.run([glmbatch, "model", "tokenize", folder, *flags], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in out.split(b"\n") if line], time.perf_counter() - start


def compare(glmbatch, name, folder, every=1):
    tok = Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
    tok.no_truncation()
    special = [t.content for t in tok.get_added_tokens_decoder().values()]
    docs = [d for i, d in enumerate(documents(special, random.Random(1))) if i % every == 0 or d[0] in ("phrase", "special", "random")]
    texts = [t for _, t in docs]
    start = time.perf_counter()
    want = [e.ids for e in tok.encode_batch_fast(texts, add_special_tokens=False)]
    theirs = time.perf_counter() - start
    got, ours = run(glmbatch, folder, texts)
    skipped, _ = run(glmbatch, folder, texts, "--skip-special")
    counts, wrong = {}, 0
    for i, (kind, text) in enumerate(docs):
        c = counts.setdefault(kind, [0, 0, 0])
        c[0] += 1
        c[1] += len(text.encode())
        faults = []
        if got[i]["ids"] != want[i]:
            faults.append(f"ids {got[i]['ids'][:20]} not {want[i][:20]}")
        if got[i]["decoded"] != tok.decode(want[i], skip_special_tokens=False):
            faults.append("decoded text")
        if skipped[i]["decoded"] != tok.decode(want[i], skip_special_tokens=True):
            faults.append("text decoded without special tokens")
        if faults:
            c[2] += 1
            wrong += 1
            if wrong <= 10:
                print(f"  {kind} {i} {text[:60]!r}: {'; '.join(faults)}")
    for kind, (n, size, bad) in counts.items():
        print(f"  {kind:12} {n:5} documents {size:9} bytes  {bad} differ")
    size = sum(c[1] for c in counts.values())
    print(f"{name}: {len(docs)} documents, {size} bytes, {sum(map(len, want))} tokens, {wrong} differ; "
          f"tokenizers {tokenizers.__version__} {theirs:.1f} s with its threads, glmbatch {ours:.1f} s with start and JSON")
    return len(docs) >= 3000 // every and len(got) == len(docs) and wrong == 0


def compare_chats(glmbatch, name, folder):
    """Compares renders of the folder's own chat template with Jinja2's."""
    file = pathlib.Path(folder) / "chat_template.jinja"
    if file.exists():
        source = file.read_text(encoding="utf-8")
    else:
        source = json.loads((pathlib.Path(folder) / "tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
    template = chat_golden.environment().from_string(source)
    given = []
    for chat in chat_golden.CHATS:
        for extra in ({}, {"enable_thinking": True}, {"enable_thinking": False}, {"tools": chat_golden.TOOLS}):
            for generate in (True, False):
                given.append({"messages": chat, "add_generation_prompt": generate, **extra})
    lines = "".join(json.dumps(g) + "\n" for g in given)
    out = subprocess.run([glmbatch, "model", "tokenize", folder, "--chat"], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout
    got = [json.loads(line)["text"] for line in out.split(b"\n") if line]
    wrong = [(g, w, t) for g, w, t in zip(given, (template.render(**g) for g in given), got, strict=True) if w != t]
    for g, w, t in wrong[:3]:
        print(f"  {json.dumps(g)[:200]}\n  Jinja2   {w!r}\n  glmbatch {t!r}")
    print(f"{name}: {len(given)} chats, {len(wrong)} differ")
    return not wrong


def variants(folder, scratch):
    """Yields (name, folder) of changed tokenizers."""

    def write(name, change):
        file = json.loads((pathlib.Path(folder) / "tokenizer.json").read_text(encoding="utf-8"))
        change(file)
        out = pathlib.Path(scratch) / name
        out.mkdir(parents=True, exist_ok=True)
        (out / "tokenizer.json").write_text(json.dumps(file), encoding="utf-8")
        return name, str(out)

    def gpt2(file):
        file["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        file["model"]["merges"] = [" ".join(m) for m in file["model"]["merges"]]

    def both(file):  # a Split, then the pattern of ByteLevel in each piece, with a space before it
        file["pre_tokenizer"]["pretokenizers"][-1].update(add_prefix_space=True, use_regex=True)
        file["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}

    def whole(file):  # words that merges alone do not make
        file["model"]["ignore_merges"] = True
        file["model"]["merges"] = file["model"]["merges"][::2]
        kept = {a + b for a, b in file["model"]["merges"]}
        file["model"]["merges"] = [m for m in file["model"]["merges"] if all(len(x) == 1 or x in kept for x in m)]

    def flags(file):
        file["normalizer"] = {"type": "NFC"}
        start = 1 + max(t["id"] for t in file["added_tokens"])
        names = ["dog", "e\u0301", "\u00e9\u00e9", "<|x|>", "<|x|>y", " fox", "ab", "abc", "bcd", "1", "\u00e9"]
        for i, name in enumerate(names):
            for bits in range(8):
                content = name if bits == i % 8 else f"{name}~{bits}"
                file["added_tokens"].append({"id": start, "content": content, "single_word": bool(bits & 1), "lstrip": bool(bits & 2), "rstrip": bool(bits & 4),
                                             "normalized": i % 2 == 1, "special": bits % 3 == 0})
                start += 1
        taken = set(file["model"]["vocab"])
        ids = {c: file["model"]["vocab"].get(c) for c in taken}
        tokens, next_id = [], 1 + max(t["id"] for t in file["added_tokens"][:21])
        for t in file["added_tokens"]:
            if t["content"] in taken:
                t["id"] = ids[t["content"]]
            elif len(tokens) >= 21:
                t["id"], next_id = next_id, next_id + 1
            tokens.append(t)
        file["added_tokens"] = tokens

    def splits(*parts):  # patterns that no scanner knows, as other models have them
        def change(file):
            file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
                p if isinstance(p, dict) else {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in parts
            ] + [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
        return change

    deepseek = splits(r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                      r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    upper, lower, short = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    o200k = splits(rf"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{short}|[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{short}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    words = splits({"type": "Digits", "individual_digits": True}, {"type": "Split", "pattern": {"String": "."}, "behavior": "Isolated", "invert": False},
                   {"type": "Split", "pattern": {"Regex": r"[\p{L}\p{M}]+|[^\p{L}\p{M}\s]+|\s+"}, "behavior": "Removed", "invert": True})
    qwen35 = splits(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    for name, change in (("deepseek", deepseek), ("o200k", o200k), ("words", words), ("qwen35", qwen35)):
        yield write(name, change)
    for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        for invert in (False, True):
            yield write(f"{behavior}-{invert}", splits({"type": "Split", "pattern": {"Regex": r"\s|[ae.]|\p{N}"}, "behavior": behavior, "invert": invert}))
        yield write(f"Punctuation-{behavior}", splits({"type": "Punctuation", "behavior": behavior}))
    for scheme in ("always", "first", "never"):
        for cut in (False, True):
            yield write(f"Metaspace-{scheme}-{cut}", splits({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}))
    yield write("known-MergedWithNext", splits({"type": "Split", "pattern": {"Regex": r"\p{N}"}, "behavior": "MergedWithNext", "invert": False}, {"type": "Digits", "individual_digits": False}))
    for change in (gpt2, both, whole, flags):
        yield write(change.__name__, change)


def main():
    glmbatch, scratch, *pairs = sys.argv[1:]
    ok = True
    for pair in pairs:
        name, folder = pair.split("=", 1)
        ok &= compare(glmbatch, name, folder)
        ok &= compare_chats(glmbatch, name, folder)
    for name, folder in variants(pairs[0].split("=", 1)[1], scratch):
        ok &= compare(glmbatch, name, folder, every=12)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
