#!/usr/bin/env bash
# Servers and inspector whose system calls fail: tests/faults/run.sh [PART OF A CASE'S NAME]
# strace makes them fail. It is installed where it is missing; without it this is left out, but in CI that is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v strace >/dev/null || tests/apt.sh strace || true
if ! strace -qq -o /dev/null -e inject=getppid:error=EINTR true 2>/dev/null; then
  echo "faults: left out: no strace that may trace here (apt-get install strace; in a container: --cap-add SYS_PTRACE)" >&2
  [ "${CI:-}" != true ]
  exit
fi
cargo build --workspace --example calc --example sysmon --bin inspect
exec "${PYTHON:-python3}" tests/faults/faults.py "${CARGO_TARGET_DIR:-target}/debug" "$@"
