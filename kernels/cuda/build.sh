#!/usr/bin/env bash
# Compiles src/*.cu into images/*.fatbin for every architecture, and notes the
# hashes of sources and images and the images' matrix instructions. nvcc comes from the PATH or NVCC, else from
# PyPI into .cache, by toolchain.txt.
# With the argument "headers": prints the folder of cuda.h, fetched where needed.
set -euo pipefail
cd "$(dirname "$0")"
root=../..
headers() { # folder with cuda.h
  if [ -n "${CUDA_HOME:-}" ] && [ -f "$CUDA_HOME/include/cuda.h" ]; then echo "$CUDA_HOME/include"; return; fi
  [ -f /usr/local/cuda/include/cuda.h ] && { echo /usr/local/cuda/include; return; }
  find "$root/.cache/cuda" -path '*/include/cuda.h' -printf '%h\n' 2>/dev/null | head -n 1 || true
}
venv=$root/.cache/cuda
fetch() { # packages of toolchain.txt whose names match, from PyPI, with the hashes there
  [ -d "$venv" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r <(grep -E "^nvidia-($1)==" toolchain.txt)
}
if [ "${1:-}" = headers ]; then
  d=$(headers)
  [ -n "$d" ] || { fetch 'cuda-runtime' >&2; d=$(headers); }
  cd "$d" && pwd
  exit
fi
if [ -z "${NVCC:-}" ] && ! NVCC=$(command -v nvcc); then
  if ! find "$venv" -name nvcc -type f 2>/dev/null | grep -q .; then
    fetch 'cuda-nvcc|cuda-runtime|cuda-crt|nvvm|cuda-cccl'
  fi
  NVCC=$(find "$venv" -name nvcc -type f | head -n 1)
fi
arch=(-gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_100a,code=sm_100a -gencode=arch=compute_120a,code=sm_120a -gencode=arch=compute_90,code=compute_90)
mkdir -p images
for f in src/*.cu; do
  out=images/$(basename "$f" .cu).fatbin
  echo "nvcc $f" >&2
  "$NVCC" -std=c++17 -O3 --fatbin -Xfatbin -compress-all "${arch[@]}" -o "$out" "$f"
done
cat src/*.cu src/*.cuh | sha256sum | cut -d' ' -f1 > images/SOURCES.sha256
(cd images && LC_ALL=C sha256sum ./*.fatbin) > images/SHA256SUMS
bash disasm.sh
