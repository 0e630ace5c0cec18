#!/usr/bin/env bash
# Runs commands that write one path at once, and in a folder with another user's links;
# see together.py. TIMES is how often.
set -euo pipefail
cd "$(dirname "$0")/.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -o "$work/glmbatch" ./cmd/glmbatch
python3 interop/together.py "$work/files" "$work/glmbatch" "${TIMES:-100}"
