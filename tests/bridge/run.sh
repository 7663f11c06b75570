#!/usr/bin/env bash
# The bridge between real hosts and real servers, in all pairs of eras, and while the servers are killed:
#   tests/bridge/run.sh
# It builds the programs that it needs, and uses the pinned SDKs of tests/interop and, where it is there, QEMU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# With the features of the whole workspace, as `cargo test --workspace` has compiled them.
cargo build -q --workspace --bin mcp-bridge --bin conformance-server --example sysmon --example calc --example inspect
tests/interop/install.sh
target="$(realpath "${CARGO_TARGET_DIR:-target}")"
export BRIDGE_PROGRAMS="$target/debug" BRIDGE_PROGRAM="$target/debug/mcp-bridge"
python=tests/interop/.venv-mcp-2.3/bin/python
"$python" tests/bridge/lost.py
"$python" tests/bridge/hosts.py
"$python" tests/bridge/config.py
tests/conformance/install.sh
"$python" tests/bridge/suites.py stdio
if command -v qemu-system-arm >/dev/null; then
  board=$(FIRMWARE_LEAN=0 examples/firmware/run.sh build uart)
  "$python" tests/bridge/suites.py board
  "$python" tests/bridge/board.py "$board"
  button=$(FIRMWARE_LEAN=0 examples/firmware/run.sh build interrupts)
  "$python" tests/bridge/events.py "$button" "$(FIRMWARE_LEAN=0 examples/firmware/run.sh build ethernet)"
  tests/interop/.venv-mcp-1.30/bin/python tests/bridge/home_assistant.py "$board"
else
  echo "left out: no qemu-system-arm" >&2
fi
# Every pinned SDK as a host, in each revision that it speaks. calc is of 2026-07-28 and of the others.
for era in modern legacy; do
  INTEROP_CALC="$BRIDGE_PROGRAM --era $era -- $BRIDGE_PROGRAMS/examples/calc stdio" \
    tests/interop/run.sh --server calc --transport stdio
done
"$python" tests/bridge/matrix.py
