#!/usr/bin/env bash
# Tasks: the clients of two SDKs (2025-11-25), of ext-tasks (both revisions) and of rmcp (2026-07-28) drive the example `brew` of
# mcp_sansio_extensions::tasks, over stdio and over HTTP (rmcp over stdio only); `inspect` drives servers of rmcp.
# Then tasks of a client of 2025-11-25: the example `later` answers questions of server-everything later.
# INSPECT and RMCP name programs to be used in place of those that cargo builds.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
"$here/install.sh"
(cd "$root" && cargo build --quiet --workspace --example brew --example later --example inspect)
INSPECT="${INSPECT:-$CARGO_TARGET_DIR/debug/examples/inspect}"
if [ -z "${RMCP:-}" ]; then
    (cd "$here/servers/rmcp" && cargo build --quiet --locked)
    RMCP="$CARGO_TARGET_DIR/debug/interop-rmcp"
fi
brew="$CARGO_TARGET_DIR/debug/examples/brew"
log="$(mktemp)"
"$brew" --http 127.0.0.1:0 > "$log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 100); do
    [ -s "$log" ] && break
    sleep 0.1
done
for where in "$brew" "$(cat "$log")"; do
    "$here/.venv-mcp-1.30/bin/python" "$here/clients/tasks.py" "$where"
    node "$here/clients/tasks.mjs" "$where"
    node "$here/clients/ext_tasks.mjs" "$where"
done
timeout -k 5 60 "$RMCP" follow "$brew"
timeout -k 5 300 "${PYTHON:-python3}" "$here/rmcp_tasks.py" "$INSPECT" "$RMCP"
later="$CARGO_TARGET_DIR/debug/examples/later"
everything="$here/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
# Calls a tool that asks for a task, and looks for each of the texts in its result.
ask() {
    local tool="$1" found wanted
    found="$(timeout -k 5 120 "$later" "$tool" '{"prompt":"six times seven"}' node "$everything" stdio)"
    shift
    for wanted in "$@"; do
        grep -qF -- "$wanted" <<< "$found" || { printf '%s: no %s in\n%s\n' "$tool" "$wanted" "$found" >&2; exit 1; }
    done
    echo "pass  later   $tool"
}
related='"io.modelcontextprotocol/related-task": {'
ask trigger-sampling-request-async '[COMPLETED]' 'Poll 1: working' ': completed' '"text": "forty-two"' "$related"
ask trigger-elicitation-request-async '[COMPLETED]' 'Poll 1: working' ': completed' '- Name: Ada' "$related"
echo "tasks.sh: all passed"
