#!/usr/bin/env bash
# Compiles each src/*.cu into images/NAME.fatbin for every architecture, if what it is made of has changed: its
# source, what that includes, nvcc.options or toolchain.txt. images/MANIFEST.txt notes of each image the hash of what
# it is made of, its own, and its matrix instructions. nvcc and cuobjdump come from the PATH (nvcc also from NVCC),
# else from PyPI into .cache, by toolchain.txt.
# JOBS: how many at a time (default: as there are processors). Arguments are the images to compile in any case ("all":
# every one), or "headers": prints the folder of cuda.h,
# fetched where needed.
set -euo pipefail
cd "$(dirname "$0")"
venv=../../.cache/cuda
fetch() { # packages of toolchain.txt whose names match, from PyPI, with the hashes there
  [ -d "$venv" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r <(grep -E "^nvidia-($1)==" toolchain.txt)
}
fetched() { find "$venv/" -path "*/$1" 2>/dev/null | head -n 1 || true; }
headers() { # folder with cuda.h
  if [ -n "${CUDA_HOME:-}" ] && [ -f "$CUDA_HOME/include/cuda.h" ]; then echo "$CUDA_HOME/include"; return; fi
  if [ -f /usr/local/cuda/include/cuda.h ]; then echo /usr/local/cuda/include; return; fi
  fetched include/cuda.h | xargs -r dirname
}
if [ "${1:-}" = headers ]; then
  d=$(headers)
  [ -n "$d" ] || { fetch cuda-runtime >&2; d=$(headers); }
  cd "$d" && pwd
  exit
fi
tools() { # nvcc, cuobjdump
  if [ -z "${NVCC:-}" ] && ! NVCC=$(command -v nvcc); then
    [ -n "$(fetched bin/nvcc)" ] || fetch 'cuda-nvcc|cuda-runtime|cuda-crt|nvvm|cuda-cccl'
    NVCC=$(fetched bin/nvcc)
  fi
  if ! command -v cuobjdump >/dev/null || ! command -v nvdisasm >/dev/null; then
    [ -n "$(fetched bin/nvdisasm)" ] || fetch 'cuda-cuobjdump|cuda-nvdisasm'
    PATH=$(realpath "$(dirname "$(fetched bin/nvdisasm)")"):$PATH
  fi
}
declare -A seen
closure() { # a source and what it includes
  [ -z "${seen[$1]:-}" ] || return 0
  seen[$1]=1
  echo "$1"
  local name
  for name in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$1"); do closure "src/$name"; done
}
made_of() { # the hash of all that an image is made of
  seen=()
  closure "$1" >"$scratch"
  LC_ALL=C sort "$scratch" | xargs sha256sum nvcc.options toolchain.txt | sha256sum | cut -d' ' -f1
}
instructions() { # an image's matrix instructions, by architecture
  local a
  for a in sm_90a sm_100a sm_120a; do
    cuobjdump -sass -arch "$a" "$1" | { grep -oE '\b(HMMA|HGMMA|OMMA|QMMA|UTC[A-Z]*MMA)[.A-Z0-9]*' || true; } |
      LC_ALL=C sort | uniq -c | while read -r n op; do echo "  $a $op $n"; done
  done
}
names() { find src -name '*.cu' -printf '%f\n' | sed 's/\.cu$//' | LC_ALL=C sort; }
notes=$(mktemp -d) # a file an image
scratch=$notes/.closure
end() { # what was compiled is noted, also where another image fails
  local code=$? name
  wait || true
  for name in $(names); do [ ! -s "$notes/$name" ] || { cat "$notes/$name"; echo; }; done >images/MANIFEST.txt
  rm -r "$notes"
  exit "$code"
}
mkdir -p images
[ ! -f images/MANIFEST.txt ] || awk -v RS= -F'\n' -v dir="$notes" '{ print > (dir "/" $1) }' images/MANIFEST.txt
trap end EXIT
compile() { # source, image, its note, what it is made of
  "$NVCC" --options-file nvcc.options -o "$2" "$1"
  { printf '%s\n  sources %s\n  image %s\n' "$(basename "$1" .cu)" "$4" "$(sha256sum <"$2" | cut -d' ' -f1)"; instructions "$2"; } >"$3"
}
jobs=0
for name in $(names); do
  f=$(find src -name "$name.cu") out=images/$name.fatbin note=$notes/$name
  touch "$note"
  sources=$(made_of "$f")
  if [[ " $* " == *" $name "* || " $* " == *" all "* || ! -f $out ]] ||
    [ "$(sed -n 's/^  sources //p' "$note")" != "$sources" ] ||
    [ "$(sed -n 's/^  image //p' "$note")" != "$(sha256sum <"$out" | cut -d' ' -f1)" ]; then
    echo "nvcc $f" >&2
    tools
    [ "$jobs" -lt "${JOBS:-$(nproc)}" ] || { wait -n; jobs=$((jobs - 1)); }
    compile "$f" "$out" "$note" "$sources" &
    jobs=$((jobs + 1))
  fi
done
while [ "$jobs" -gt 0 ]; do wait -n; jobs=$((jobs - 1)); done
for out in images/*.fatbin; do # whose source is gone
  [ -e "$notes/$(basename "$out" .fatbin)" ] && [ -n "$(find src -name "$(basename "$out" .fatbin).cu")" ] || rm "$out"
done
