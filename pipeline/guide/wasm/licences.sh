#!/usr/bin/env bash
# Writes LICENCES.txt: what is in the module, and the licences' texts. build.sh calls it.
set -euo pipefail
cd "$(dirname "$0")"
crates=$1 # the folder with their sources
echo "What pipeline/guide/module.wasm.zst is built from, and the licences. Written by build.sh."
echo "Rust's standard library, with what it is built from: MIT or Apache-2.0, https://github.com/rust-lang/rust"
grep -A1 '^name = ' Cargo.lock | sed -n 's/^name = "\(.*\)"/\1/p; s/^version = "\(.*\)"/\1/p' | paste -d' ' - - | while read -r name version; do
  [ "$name" = guide ] && continue
  dir=$crates/$name-$version
  printf '\n== %s %s (%s) ==\n' "$name" "$version" "$(sed -n 's/^license = "\(.*\)"/\1/p' "$dir/Cargo.toml" | head -1)"
  texts=$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' \) | LC_ALL=C sort)
  # Of MIT or Apache-2.0 it is MIT that is chosen.
  mit=$(echo "$texts" | grep -i mit || true)
  for f in ${mit:-$texts}; do echo; cat "$f"; done
done
