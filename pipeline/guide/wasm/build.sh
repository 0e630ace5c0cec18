#!/usr/bin/env bash
# Builds ../module.wasm.zst: `make guide`. It needs rustc and cargo 1.96 with the sources
# of the standard library, and wasm-ld or rust-lld. On Debian 12 or later:
#
#   apt-get install rustc-web cargo-web rust-web-src libstd-rust-web-dev lld
#
# RUSTC, CARGO and WASM_LD name others. `go build` has no need of any of it.
set -euo pipefail
cd "$(dirname "$0")"
root=$(git rev-parse --show-toplevel)
work=${GUIDE_BUILD:-$root/.cache/guide}
mkdir -p "$work"

export RUSTC=${RUSTC:-/usr/bin/rustc}
cargo=${CARGO:-/usr/bin/cargo}
linker=${WASM_LD:-$(command -v wasm-ld || find "${RUSTUP_HOME:-$HOME/.rustup}" -name rust-lld -type f | sort | head -1)}
[ -x "$linker" ] || { echo "no wasm-ld and no rust-lld: set WASM_LD" >&2; exit 1; }
library=$("$RUSTC" --print sysroot)/lib/rustlib/src/rust

# No path of the machine that built it is in the module, so it is the same on all.
export CARGO_HOME=$work/cargo CARGO_TARGET_DIR=$work/target RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-C linker=$linker -C linker-flavor=wasm-ld -C link-arg=--allow-undefined -C target-feature=+simd128 -Zlocation-detail=none \
--remap-path-prefix=$CARGO_HOME=cargo --remap-path-prefix=$PWD=guide --remap-path-prefix=$library=rust"
"$cargo" -Zbuild-std=std,panic_abort build --locked --release --target wasm32-unknown-unknown
go run pack.go "$CARGO_TARGET_DIR/wasm32-unknown-unknown/release/guide.wasm" ../module.wasm.zst

# What it was built from, and what came of it: a test compares.
{
  sha256sum Cargo.toml Cargo.lock build.sh src/*.rs
  sha256sum <"$CARGO_TARGET_DIR/wasm32-unknown-unknown/release/guide.wasm" | sed 's/-$/module.wasm/'
} >SHA256SUMS
bash licences.sh "$(ls -d "$CARGO_HOME"/registry/src/*)" >LICENCES.txt
"$RUSTC" --version
