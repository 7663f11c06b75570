#!/usr/bin/env bash
# What 1,000 event streams cost a server, and that they go again: benches/src/bin/http.rs, `http scale`. It prints rates
# over kept connections without and with the streams, memory of each connection, session and stream, and what is left
# when the clients have gone; it fails below 10,000 requests a second, and on anything that leaks. About half a minute.
#
# usage: tests/scale/run.sh [PROGRAM]      PROGRAM is run as `PROGRAM http PORT`; examples/calc by default
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --example calc
cargo build --quiet --release -p mcp-sansio-bench --features http --bin http
ulimit -n 4096
timeout 180 "$target/release/http" scale "${1:-$target/release/examples/calc}"
