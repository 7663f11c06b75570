#!/usr/bin/env bash
# What a call through a bridge costs, beside mcp-remote, supergateway and mcp-proxy (pinned), in one run; and the instructions of ours:
#   benches/bridge.sh [--no-peers]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target="$(realpath "${CARGO_TARGET_DIR:-target}")"
cargo build -q --config adapters/bridge/build.toml --profile fast -p mcp-sansio-bridge --bin mcp-bridge
cargo build -q --release -p mcp-sansio-conformance --bin conformance-server
cargo build -q --release --example calc
peers="$target/bridge-peers"
if [ "${1:-}" != --no-peers ] && [ ! -e "$peers/done" ]; then
  mkdir -p "$peers"
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$peers" mcp-remote@0.15.1 supergateway@4.0.0
  python3 -m venv "$peers/venv"
  "$peers/venv/bin/pip" install -q --disable-pip-version-check mcp-proxy==0.13.0
  touch "$peers/done"
fi
exec python3 benches/bridge.py "$target/fast/mcp-bridge" "$target/release/conformance-server" "$target/release/examples/calc" "$peers"
