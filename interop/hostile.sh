#!/usr/bin/env bash
# Damages files of every format that the program reads (see hostile.py) and gives them
# to it. COUNT is the number of files, SEED another choice of them; 10,000 take an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! .venv/bin/python -c 'import pyarrow' 2>/dev/null; then
	python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1
fi
work="$(mktemp -d)"
CGO_ENABLED=0 go build -o "$work/glmbatch" ./cmd/glmbatch
.venv/bin/python interop/hostile.py "$work/files" "$work/glmbatch" "${COUNT:-1000}" # what failed stays
rm -rf "$work"
