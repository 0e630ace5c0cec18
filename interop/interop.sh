#!/usr/bin/env bash
# Checks files with the programs that people have: pyarrow, DuckDB, pandas, polars.
# Each of them writes prompts, glmbatch runs them, and all of them open what it
# wrote. Python packages go to .venv in this repository. With the argument parameters it is
# only the sampling parameters, of ROWS rows.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! .venv/bin/python -c 'import duckdb, pandas, polars, pyarrow' 2>/dev/null; then
	python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 duckdb==2.0.1 pandas==3.1.1 polars==2.1.0
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
go build -o "$work/glmbatch" ./cmd/glmbatch
[ "${1-}" = parameters ] || .venv/bin/python interop/check.py "$work" datasets/testdata
.venv/bin/python interop/parameters.py "$work" "$work/glmbatch"
