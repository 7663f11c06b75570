#!/usr/bin/env bash
# Events by webhook: our server with the client of the AI SDK and its handler for deliveries, see README.md.
# EVENTS names the server; without it cargo builds it.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
"$here/install.sh"
if [ -z "${EVENTS:-}" ]; then
    (cd "$root" && cargo build --quiet --workspace --bin conformance-server --example calc)
    EVENTS="$CARGO_TARGET_DIR/debug/conformance-server"
fi
port=18938
"$EVENTS" --port "$port" --events loopback &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
    (: < "/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    sleep 0.1
done
timeout -k 5 120 node "$here/clients/events.mjs" "http://127.0.0.1:$port/mcp"
