#!/usr/bin/env bash
# Real MCP clients drive our servers:
#   tests/interop/run.sh [--server calc|sysmon|firmware|all] [--client NAME|all]
#                        [--transport stdio|http|sse|all]
# More options: --help. What is pinned and what is checked: README.md.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
"$here/install.sh"
exec "${PYTHON:-python3}" "$here/runner.py" "$@"
