#!/usr/bin/env bash
# Two users of the example `callers`, who have different lists: with the clients of the Python SDK 2.x and of the TypeScript SDK, over
# HTTP with tokens, in both eras. The journal of the server has a line for each of their calls.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
"$here/install.sh"
(cd "$root" && cargo build --quiet --workspace --example callers)
log="$(mktemp)" journal="$(mktemp)"
"$CARGO_TARGET_DIR/debug/examples/callers" 0 > "$log" 2> "$journal" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -f "$log" "$journal"' EXIT
for _ in $(seq 100); do
    [ -s "$log" ] && break
    sleep 0.1
done
url="$(sed 's/^url: //' "$log")"
timeout -k 5 60 "$here/.venv-mcp-2.3/bin/python" "$here/clients/callers.py" "$url"
timeout -k 5 60 node "$here/clients/callers.mjs" "$url"
for wanted in '"who":"reader","method":"tools/call","name":"change","outcome":"error"' \
    '"who":"writer","method":"tools/call","name":"change","outcome":"result"'; do
    [ "$(grep -cF -- "$wanted" "$journal")" = 4 ] || { printf 'not 4 lines with %s in\n' "$wanted" >&2; cat "$journal" >&2; exit 1; }
done
echo "callers.sh: all passed"
