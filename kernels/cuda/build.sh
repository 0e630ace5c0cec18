#!/usr/bin/env bash
# Compiles src/*.cu into images/*.fatbin for every architecture, and notes the
# sources' hash. nvcc comes from the PATH or NVCC, else from PyPI into .cache.
set -euo pipefail
cd "$(dirname "$0")"
root=../..
headers() { # folder with cuda.h
  if [ -n "${CUDA_HOME:-}" ] && [ -f "$CUDA_HOME/include/cuda.h" ]; then echo "$CUDA_HOME/include"; return; fi
  [ -f /usr/local/cuda/include/cuda.h ] && { echo /usr/local/cuda/include; return; }
  find "$root/.cache/cuda" -path '*/include/cuda.h' -printf '%h\n' 2>/dev/null | head -n 1
}
if [ -z "${NVCC:-}" ] && ! NVCC=$(command -v nvcc); then
  venv=$root/.cache/cuda
  if ! find "$venv" -name nvcc -type f 2>/dev/null | grep -q .; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-cccl==13.0.*'
  fi
  NVCC=$(find "$venv" -name nvcc -type f | head -n 1)
fi
case "${1:-}" in
  headers) d=$(headers); [ -n "$d" ] && (cd "$d" && pwd) || { echo "no cuda.h: run make kernels" >&2; exit 1; }; exit ;;
esac
arch=(-gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_100a,code=sm_100a -gencode=arch=compute_120a,code=sm_120a -gencode=arch=compute_90,code=compute_90)
mkdir -p images
for f in src/*.cu; do
  out=images/$(basename "$f" .cu).fatbin
  echo "nvcc $f" >&2
  "$NVCC" -std=c++17 -O3 --fatbin -Xfatbin -compress-all "${arch[@]}" -o "$out" "$f"
done
cat src/*.cu src/*.cuh | sha256sum | cut -d' ' -f1 > images/SOURCES.sha256
