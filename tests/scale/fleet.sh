#!/usr/bin/env bash
# Three processes of the conformance server behind nginx (docs/nginx.conf), which keeps a session at one of them, with Redis
# (adapters/fleet).
#
# 1. tests/scale/changes.py: each listener at each process hears each change once, also after Redis and processes were
#    killed and started anew; without Redis each process serves its own clients.
# 2. tests/scale/fleet.py --part suites --part load: the official suites of every revision, without an excuse, and clients of all five
#    revisions. With --all then both again while one process after the other is killed with -9 and started anew, and Redis once.
#    The gate leaves that part out: what a kill hits is chance, and it takes two minutes more.
#
# Needs nginx and Redis 7, which it installs where it can (Debian: nginx-light redis-server). Some two minutes, with --all three more.
#
# usage: tests/scale/fleet.sh [--all] [OPTIONS of fleet.py]
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v nginx >/dev/null || ! command -v redis-server >/dev/null; then
  tests/apt.sh nginx-light redis-server
fi
target=${CARGO_TARGET_DIR:-target}
server=$target/debug/conformance-server
cargo build --quiet --workspace --bin conformance-server --example calc
tests/conformance/install.sh
parts=(--part suites --part load)
if [ "${1:-}" = --all ]; then shift; parts=(); fi
status=0
timeout 120 "${PYTHON:-python3}" tests/scale/changes.py "$server" || status=1
timeout 1500 "${PYTHON:-python3}" tests/scale/fleet.py "${parts[@]}" "$@" "$server" || status=1
[ $status = 0 ] && echo "fleet: passed" || echo "fleet: FAILED"
exit $status
