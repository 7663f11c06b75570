#!/usr/bin/env bash
# Skills between our programs and other SDKs, both ways: see README.md. With BOARD=URL also the manual of a board.
# SKILLS, INSPECT and RMCP name the programs; without them cargo builds them.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$here/../.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$(cd "$root" && pwd)/target}"
"$here/install.sh"
if [ -z "${SKILLS:-}" ] || [ -z "${INSPECT:-}" ]; then
    (cd "$root" && cargo build --quiet --workspace --example skills --example inspect)
    SKILLS="${SKILLS:-$CARGO_TARGET_DIR/debug/examples/skills}" INSPECT="${INSPECT:-$CARGO_TARGET_DIR/debug/examples/inspect}"
fi
if [ -z "${RMCP:-}" ]; then
    (cd "$here/skills/rmcp" && cargo build --quiet --locked)
    RMCP="$CARGO_TARGET_DIR/debug/interop-rmcp-skills"
fi
export SKILLS INSPECT RMCP
exec timeout -k 5 300 node --test --test-reporter=spec "$here/skills/skills.test.mjs"
