#!/usr/bin/env bash
# Counts the matrix instructions of each image and architecture, from its
# disassembly, into images/INSTRUCTIONS.txt below the sources' hash. cuobjdump and
# nvdisasm come from the PATH, else from PyPI into .cache.
set -euo pipefail
cd "$(dirname "$0")"
venv=../../.cache/cuda
if ! command -v cuobjdump nvdisasm >/dev/null || [ "$(command -v cuobjdump nvdisasm | wc -l)" != 2 ]; then
  if ! find "$venv" -name nvdisasm -type f 2>/dev/null | grep -q .; then
    [ -d "$venv" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r <(grep -E "^nvidia-cuda-(cuobjdump|nvdisasm)==" toolchain.txt)
  fi
  PATH=$(dirname "$(find "$venv" -name nvdisasm -type f | head -n 1)"):$PATH
fi
count() { # image, architecture
  cuobjdump -sass -arch "$2" "images/$1.fatbin" | grep -oE '\b(HMMA|HGMMA|OMMA|QMMA|UTC[A-Z]*MMA)[.A-Z0-9]*' | LC_ALL=C sort | uniq -c |
    while read -r n op; do echo "$1 $2 $op $n"; done || true
}
cat images/SOURCES.sha256 > images/INSTRUCTIONS.new
for f in images/*.fatbin; do
  for a in sm_90a sm_100a sm_120a; do count "$(basename "$f" .fatbin)" "$a"; done
done >> images/INSTRUCTIONS.new
mv images/INSTRUCTIONS.new images/INSTRUCTIONS.txt
