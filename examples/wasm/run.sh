#!/usr/bin/env bash
# Builds the module and runs its test in Node.
#
#   run.sh          build, test, print the size
#   run.sh build    build only, and print the path of the module
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../tests/bare_metal/toolchain.sh"
bm_select wasm32-unknown-unknown
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}/wasm-$BM_KIND
"${BM_CARGO[@]}" build --quiet --locked --release "${BM_FLAGS[@]}" --manifest-path "$here/Cargo.toml" </dev/null >&2
module=$CARGO_TARGET_DIR/$BM_TARGET/release/mcp_sansio_module.wasm
if [ "${1:-}" = build ]; then
    printf '%s\n' "$module"
    exit
fi
command -v node >/dev/null || { echo "wasm: no node" >&2; exit 1; }
node "$here/test.mjs" "$module"
printf 'wasm: %d bytes\n' "$(wc -c <"$module")"
