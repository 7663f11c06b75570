#!/usr/bin/env bash
# Our client drives real MCP servers, other SDKs' and our own:
#   tests/interop/reverse.sh [--server NAME|all] [--transport stdio|http|sse|all]
#                            [--revision DATE|auto|all]
# More options: --help. What is pinned and what is checked: README.md.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$here/../.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$(cd "$root" && pwd)/target}"
"$here/install.sh" servers
(cd "$root" && cargo build --quiet --workspace --bin mcp-sansio-walker --example calc --example sysmon)
(cd "$here/servers/rmcp" && cargo build --quiet --locked)
exec "${PYTHON:-python3}" "$here/reverse.py" "$@"
