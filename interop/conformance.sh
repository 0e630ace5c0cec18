#!/usr/bin/env bash
# Passes files of every kind of column by five writers, and damaged ones, through
# the reader and the writer, and compares what comes back with pyarrow. SPARK=1 adds
# Spark, which needs Java, and JOBS=all jobs of all files instead of one of each writer;
# MUTANTS is the number of damaged files; see conformance.py for a folder of files by others.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! .venv/bin/python -c 'import duckdb, fastparquet, pandas, polars, pyarrow' 2>/dev/null; then
	python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 duckdb==2.0.1 pandas==3.1.1 polars==2.1.0 fastparquet==2026.9.0
fi
if [ -n "${SPARK:-}" ] && ! .venv/bin/python -c 'import pyspark' 2>/dev/null; then
	.venv/bin/pip install --quiet --disable-pip-version-check pyspark==4.3.0
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/pass" ./datasets
CGO_ENABLED=0 go build -o "$work/glmbatch" ./cmd/glmbatch
mkdir "$work/conformance" "$work/mutants"
.venv/bin/python interop/mutants.py "$work/mutants" "$work/pass" "${MUTANTS:-1000}"
.venv/bin/python interop/conformance.py "$work/conformance" "$work/pass" "$work/glmbatch"
