#!/usr/bin/env bash
# Builds the static library: adapters/c/build.sh [TARGET [FEATURES]]. Prints the path of libmcp.a.
# FEATURES: http, ask. Default: all of them; for bare metal none.
# For bare metal it is made small; tests/bare_metal/toolchain.sh finds a toolchain.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
case $target in *-none-*) features=${2-} ;; *) features=${2-http,ask} ;; esac
directory=${CARGO_TARGET_DIR:-$root/target}/c
cargo=(cargo)
flags=(--target "$target")
if [[ $target == *-none-* ]]; then
    . "$root/tests/bare_metal/toolchain.sh"
    export BM_LEAN=${BM_LEAN-try}
    bm_select "$target"
    cargo=("${BM_CARGO[@]}")
    flags=("${BM_FLAGS[@]}")
    export CARGO_PROFILE_SMALL_OPT_LEVEL=z
fi
CARGO_TARGET_DIR=$directory "${cargo[@]}" rustc --quiet --locked --profile small "${flags[@]}" --manifest-path "$root/Cargo.toml" \
    -p mcp-sansio-c --features "$features" --lib --crate-type staticlib -- --cfg mcp_archive >&2
echo "$directory/$target/small/libmcp.a"
